//! Tests of the finder.

use super::*;

#[test]
fn every_rule_compiles_and_says_what_it_finds() {
    let rules = Rules::standard();
    assert!(rules.list.len() > 240, "{} rules", rules.list.len());
    for rule in &rules.list {
        assert!(
            rule.regex.regex().is_some(),
            "{}: {}",
            rule.id,
            rule.regex.text
        );
        let doubts = rule.not.iter().chain(&rule.not_match).chain(&rule.not_line);
        for pattern in doubts {
            assert!(pattern.regex().is_some(), "{}: {}", rule.id, pattern.text);
        }
        assert!(
            !rule.about.is_empty() && !rule.anchors.is_empty(),
            "{}",
            rule.id
        );
    }
}
