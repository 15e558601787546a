// The page begins here: what it will ask is asked, then the rest of it is loaded.
import { parse } from "./lib/address";
import { token } from "./lib/api";
import { begin } from "./lib/opening";

// Who brings a token is let in first.
if (!token()) begin(parse(location.pathname, location.search));
void import("./main");
