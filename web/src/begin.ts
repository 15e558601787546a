// The page begins here: what it will ask is asked, then the rest of it is loaded.
import { accessKey, tokenInAddress } from "./lib/access";
import { parse } from "./lib/address";
import { begin } from "./lib/opening";

// Who brings a token is let in first.
if (accessKey() && tokenInAddress() === null) begin(parse(location.pathname, location.search));
void import("./main");
