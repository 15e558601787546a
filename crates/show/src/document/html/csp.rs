//! What a page may do: nothing but to show itself.
//!
//! The policy names our own style and script by their hashes, so a browser runs these two and
//! nothing else, whatever a transcript holds, and requests nothing at all.

/// The style of every page.
pub(crate) const STYLE: &str = include_str!("../../../assets/page.css");

/// The script of every page.
pub(crate) const SCRIPT: &str = include_str!("../../../assets/page.js");

/// The policy of a page. Both texts are fixed, so their hashes are too.
pub(crate) const POLICY: &str = include_str!("../../../assets/page.csp");

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use sha2::{Digest, Sha256};

    /// The name of an inline text in a policy.
    fn source(text: &str) -> String {
        let hash = Sha256::digest(text.as_bytes());
        format!("'sha256-{}'", BASE64_STANDARD.encode(hash))
    }

    #[test]
    fn the_policy_names_our_style_and_script_and_nothing_else() {
        let policy = format!(
            "default-src 'none'; img-src data:; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
            source(STYLE),
            source(SCRIPT)
        );
        // After a change of style or script: `UPDATE_EXPECT=1 cargo test -p unspool-show policy`.
        expect_test::expect_file!["../../../assets/page.csp"].assert_eq(&policy);
        assert_eq!(POLICY, policy);
    }

    #[test]
    fn style_and_script_can_stand_in_a_page_as_they_are() {
        assert!(!STYLE.contains("</") && !STYLE.contains("<!--"));
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--"));
        // Line ends that git turns around would turn the hash around too: a page holds what
        // was hashed, whatever it is, but browsers read CR LF as LF.
        assert!(!STYLE.contains('\r') && !SCRIPT.contains('\r'));
        // Nothing is loaded, and no style is made by a script.
        for word in [
            "@import",
            "url(",
            "http:",
            "https:",
            "eval(",
            "innerHTML",
            ".style.",
        ] {
            assert!(!STYLE.contains(word) && !SCRIPT.contains(word), "{word}");
        }
    }
}
