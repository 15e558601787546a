//! Models of other makers that people use through Claude Code.

/// The makers as LiteLLM names them, with what the names of their own models begin with. Other
/// providers offer the same models for another price; whoever names a model without a provider
/// is taken to use its maker's.
const MAKERS: [(&str, &[&str]); 5] = [
    ("zai/", &["glm-"]),
    ("moonshot/", &["kimi-", "moonshot-"]),
    ("deepseek/", &["deepseek-"]),
    ("minimax/", &["minimax-"]),
    ("dashscope/", &["qwen"]),
];

/// The name that a maker's own model goes by: `glm-4.6` for `zai/glm-4.6`. `None` for everything
/// else.
pub fn own_name(listed: &str) -> Option<String> {
    let model = |(maker, families): &(&str, &[&str])| {
        let name = listed.strip_prefix(maker)?.to_ascii_lowercase();
        let is_own = families.iter().any(|family| name.starts_with(family));
        (is_own && !name.contains('/')).then_some(name)
    };
    MAKERS.iter().find_map(model)
}

/// Whether a row is that of such a model.
pub fn is_own(name: &str) -> bool {
    let mut families = MAKERS.iter().flat_map(|(_, families)| *families);
    !name.contains([':', '/']) && families.any(|family| name.starts_with(family))
}
