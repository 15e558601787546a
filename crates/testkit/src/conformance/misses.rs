//! Why our reader differs from the client in single cases.
//!
//! A miss that is not in this list is a mistake to be found, and an entry that is no miss
//! any more is to be taken out.

const UNSORTABLE: &str = "with lines that have no time the client sorts by a comparison that is \
not an order, so the outcome depends on the steps of its sorting; we compare each line with the \
newest so far";
const NUMBER: &str = "the client takes a number for a time; we read only what clients write, text";

/// Version, case, reason.
const KNOWN: &[(&str, &str, &str)] = &[
    ("2.0.50", "edit/time-missing-answers", UNSORTABLE),
    ("2.0.50", "edit/time-number", NUMBER),
    ("2.1.45", "edit/time-missing-answers", UNSORTABLE),
    ("2.1.45", "edit/time-number", NUMBER),
    (
        "2.1.200",
        "edit/model-missing-all",
        "without any model in the file the client sends nothing for a minute; we give the \
         messages it would send if it did",
    ),
];

/// The reason, if it is known.
pub fn reason(version: &str, case: &str) -> Option<&'static str> {
    let mut known = KNOWN.iter();
    known
        .find(|known| (known.0, known.1) == (version, case))
        .map(|known| known.2)
}

/// The cases of a version in which the reader is known to differ.
pub fn of(version: &str) -> impl Iterator<Item = &'static str> {
    let known = KNOWN.iter().filter(move |known| known.0 == version);
    known.map(|known| known.1)
}
