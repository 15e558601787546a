//! Three words that name a session.

const MOODS: [&str; 32] = [
    "amber", "brave", "calm", "candid", "clever", "cosy", "curious", "dapper", "eager", "early",
    "fair", "gentle", "glad", "golden", "hardy", "honest", "jolly", "keen", "kind", "lively",
    "lucid", "mellow", "merry", "modest", "neat", "nimble", "patient", "quiet", "ready", "sunny",
    "tidy", "warm",
];
const DEEDS: [&str; 32] = [
    "baking",
    "carving",
    "climbing",
    "drifting",
    "drawing",
    "farming",
    "folding",
    "gliding",
    "hiking",
    "humming",
    "juggling",
    "knitting",
    "leaping",
    "mending",
    "painting",
    "paddling",
    "planting",
    "reading",
    "rowing",
    "sailing",
    "singing",
    "skating",
    "sketching",
    "spinning",
    "strolling",
    "swimming",
    "tending",
    "tinkering",
    "walking",
    "weaving",
    "whistling",
    "winding",
];
const THINGS: [&str; 32] = [
    "acorn", "anchor", "badger", "beacon", "birch", "brook", "cedar", "comet", "cricket", "dune",
    "falcon", "fern", "harbor", "hazel", "heron", "lantern", "lark", "lichen", "meadow", "minnow",
    "orchard", "otter", "pebble", "pine", "quill", "reed", "robin", "spool", "thimble", "thread",
    "tulip", "willow",
];

/// The three words that a number stands for.
pub fn slug(number: u64) -> String {
    let pick = |list: &[&'static str; 32], shift: u32| list[(number >> shift & 31) as usize];
    let (mood, deed, thing) = (pick(&MOODS, 0), pick(&DEEDS, 5), pick(&THINGS, 10));
    format!("{mood}-{deed}-{thing}")
}
