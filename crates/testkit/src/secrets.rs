//! Labelled secrets: tokens of many families as their makers describe them, in the places and
//! forms in which they turn up in sessions, and things that only look like them.
//!
//! The shapes are written down from what each maker says about its tokens (prefix, length,
//! alphabet, checksum), not from the rules of any finder, so that a finder can be judged by
//! them. Everything is drawn at random when it is needed.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::random::Random;

pub mod named;
pub mod written;

/// A line of a transcript, and where its secret is.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Whose token it is.
    pub family: &'static str,
    /// How it is written.
    pub form: &'static str,
    /// The line.
    pub line: String,
    /// Where the secret is, as it stands in the line; `None` if there is none.
    pub secret: Option<Range<usize>>,
}

/// A family: its name, the variable people keep it in, and its shape.
///
/// In a shape `{x20}` is twenty characters of the class `x`, see [`class`]; `{uuid}` is a
/// UUID, `{crc}` the checksum that GitHub and npm put behind the thirty characters before it.
type Family = (&'static str, &'static str, &'static str);

/// The families.
pub const FAMILIES: &[Family] = &[
    ("github-classic", "GITHUB_TOKEN", "ghp_{a30}{crc}"),
    ("github-oauth", "GH_TOKEN", "gho_{a30}{crc}"),
    ("github-user", "GH_TOKEN", "ghu_{a30}{crc}"),
    ("github-server", "GH_TOKEN", "ghs_{a30}{crc}"),
    ("github-refresh", "GH_REFRESH", "ghr_{a70}{crc}"),
    (
        "github-fine-grained",
        "GITHUB_TOKEN",
        "github_pat_{a22}_{a59}",
    ),
    ("gitlab", "GITLAB_TOKEN", "glpat-{b20}"),
    ("gitlab-routable", "GITLAB_TOKEN", "glpat-{b27}.01.{l9}"),
    ("gitlab-runner", "RUNNER_TOKEN", "glrt-{b20}"),
    ("gitlab-deploy", "DEPLOY_TOKEN", "gldt-{b20}"),
    ("aws-key-id", "AWS_ACCESS_KEY_ID", "AKIA{A16}"),
    ("aws-session-id", "AWS_ACCESS_KEY_ID", "ASIA{A16}"),
    ("aws-secret", "AWS_SECRET_ACCESS_KEY", "{B40}"),
    ("google-api", "GOOGLE_API_KEY", "AIza{b35}"),
    (
        "google-client-secret",
        "GOOGLE_CLIENT_SECRET",
        "GOCSPX-{b28}",
    ),
    ("google-access", "ACCESS_TOKEN", "ya29.a0{b160}"),
    ("slack-bot", "SLACK_BOT_TOKEN", "xoxb-{d12}-{d13}-{a24}"),
    ("slack-user", "SLACK_TOKEN", "xoxp-{d12}-{d12}-{d13}-{h32}"),
    ("slack-app", "SLACK_APP_TOKEN", "xapp-1-A{u10}-{d13}-{h64}"),
    (
        "slack-webhook",
        "SLACK_WEBHOOK",
        "https://hooks.slack.com/services/T{u10}/B{u10}/{a24}",
    ),
    ("stripe-secret", "STRIPE_SECRET_KEY", "sk_live_{a24}"),
    ("stripe-long", "STRIPE_SECRET_KEY", "sk_live_51{a97}"),
    ("stripe-restricted", "STRIPE_KEY", "rk_live_{a24}"),
    ("stripe-webhook", "STRIPE_WEBHOOK_SECRET", "whsec_{a32}"),
    ("twilio-key", "TWILIO_API_KEY", "SK{h32}"),
    ("twilio-auth", "TWILIO_AUTH_TOKEN", "{h32}"),
    ("sendgrid", "SENDGRID_API_KEY", "SG.{b22}.{b43}"),
    ("mailgun", "MAILGUN_API_KEY", "key-{h32}"),
    ("mailchimp", "MAILCHIMP_API_KEY", "{h32}-us21"),
    ("brevo", "BREVO_API_KEY", "xkeysib-{h64}-{a16}"),
    ("resend", "RESEND_API_KEY", "re_{a8}_{a24}"),
    ("npm", "NPM_TOKEN", "npm_{a30}{crc}"),
    ("pypi", "TWINE_PASSWORD", "pypi-AgEIcHlwaS5vcmc{b156}"),
    ("rubygems", "GEM_HOST_API_KEY", "rubygems_{h48}"),
    ("crates-io", "CARGO_REGISTRY_TOKEN", "cio{a32}"),
    ("nuget", "NUGET_API_KEY", "oy2{l43}"),
    ("clojars", "CLOJARS_PASSWORD", "CLOJARS_{h60}"),
    ("docker-hub", "DOCKER_PASSWORD", "dckr_pat_{b27}"),
    ("hugging-face", "HF_TOKEN", "hf_{t34}"),
    (
        "openai-project",
        "OPENAI_API_KEY",
        "sk-proj-{b74}T3BlbkFJ{b74}",
    ),
    (
        "openai-service",
        "OPENAI_API_KEY",
        "sk-svcacct-{b74}T3BlbkFJ{b74}",
    ),
    ("openai-legacy", "OPENAI_API_KEY", "sk-{a20}T3BlbkFJ{a20}"),
    ("anthropic", "ANTHROPIC_API_KEY", "sk-ant-api03-{b93}AA"),
    (
        "anthropic-oauth",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "sk-ant-oat01-{b93}AA",
    ),
    (
        "anthropic-admin",
        "ANTHROPIC_ADMIN_KEY",
        "sk-ant-admin01-{b93}AA",
    ),
    ("langfuse", "LANGFUSE_SECRET_KEY", "sk-lf-{uuid}"),
    ("langsmith", "LANGSMITH_API_KEY", "lsv2_pt_{h32}_{h10}"),
    ("openrouter", "OPENROUTER_API_KEY", "sk-or-v1-{h64}"),
    ("deepseek", "DEEPSEEK_API_KEY", "sk-{h32}"),
    ("groq", "GROQ_API_KEY", "gsk_{a52}"),
    ("xai", "XAI_API_KEY", "xai-{a80}"),
    ("perplexity", "PERPLEXITY_API_KEY", "pplx-{a48}"),
    ("replicate", "REPLICATE_API_TOKEN", "r8_{a37}"),
    ("tavily", "TAVILY_API_KEY", "tvly-dev-{a32}"),
    ("nvidia", "NVIDIA_API_KEY", "nvapi-{b64}"),
    ("pinecone", "PINECONE_API_KEY", "pcsk_{a5}_{a63}"),
    ("elevenlabs", "ELEVENLABS_API_KEY", "sk_{h48}"),
    ("wandb", "WANDB_API_KEY", "{h40}"),
    ("digitalocean", "DIGITALOCEAN_TOKEN", "dop_v1_{h64}"),
    ("heroku", "HEROKU_API_KEY", "HRKU-AA{b58}"),
    ("shopify", "SHOPIFY_TOKEN", "shpat_{h32}"),
    ("shopify-secret", "SHOPIFY_SECRET", "shpss_{h32}"),
    ("square", "SQUARE_ACCESS_TOKEN", "EAAA{b60}"),
    ("telegram", "TELEGRAM_BOT_TOKEN", "{D1}{d9}:AA{b33}"),
    ("discord-bot", "DISCORD_TOKEN", "MT{a24}.G{b5}.{b38}"),
    (
        "discord-webhook",
        "DISCORD_WEBHOOK",
        "https://discord.com/api/webhooks/{D1}{d18}/{b68}",
    ),
    ("notion", "NOTION_TOKEN", "ntn_{d11}{a35}"),
    ("notion-old", "NOTION_TOKEN", "secret_{a43}"),
    ("linear", "LINEAR_API_KEY", "lin_api_{a40}"),
    ("figma", "FIGMA_TOKEN", "figd_{b40}"),
    ("airtable", "AIRTABLE_TOKEN", "pat{a14}.{h64}"),
    ("atlassian", "JIRA_API_TOKEN", "ATATT3xFfGF0{b171}={H8}"),
    ("databricks", "DATABRICKS_TOKEN", "dapi{h32}"),
    ("doppler", "DOPPLER_TOKEN", "dp.pt.{a43}"),
    ("grafana", "GRAFANA_TOKEN", "glsa_{a32}_{h8}"),
    ("new-relic", "NEW_RELIC_API_KEY", "NRAK-{u27}"),
    ("planetscale", "PLANETSCALE_TOKEN", "pscale_tkn_{b43}"),
    ("postman", "POSTMAN_API_KEY", "PMAK-{h24}-{h34}"),
    ("pulumi", "PULUMI_ACCESS_TOKEN", "pul-{h40}"),
    ("sentry-user", "SENTRY_AUTH_TOKEN", "sntryu_{h64}"),
    ("supabase", "SUPABASE_ACCESS_TOKEN", "sbp_{h40}"),
    ("vault", "VAULT_TOKEN", "hvs.{b95}"),
    ("terraform-cloud", "TFE_TOKEN", "{a14}.atlasv1.{a67}"),
    ("netlify", "NETLIFY_AUTH_TOKEN", "nfp_{a36}"),
    ("vercel", "VERCEL_TOKEN", "{a24}"),
    ("cloudflare", "CLOUDFLARE_API_TOKEN", "{b40}"),
    (
        "cloudflare-origin",
        "CLOUDFLARE_CA_KEY",
        "v1.0-{h24}-{h146}",
    ),
    ("circleci", "CIRCLE_TOKEN", "CCIPAT_{a22}_{h40}"),
    ("buildkite", "BUILDKITE_API_TOKEN", "bkua_{h40}"),
    ("sonarqube", "SONAR_TOKEN", "squ_{h40}"),
    ("snyk", "SNYK_TOKEN", "{uuid}"),
    ("launchdarkly", "LAUNCHDARKLY_SDK_KEY", "sdk-{uuid}"),
    ("hubspot", "HUBSPOT_TOKEN", "pat-na1-{uuid}"),
    ("contentful", "CONTENTFUL_TOKEN", "CFPAT-{b43}"),
    ("dynatrace", "DT_API_TOKEN", "dt0c01.{u24}.{u64}"),
    (
        "tailscale",
        "TAILSCALE_AUTHKEY",
        "tskey-auth-k{a10}CNTRL-{a32}",
    ),
    ("azure-storage", "AZURE_STORAGE_KEY", "{B86}=="),
    ("azure-client-secret", "AZURE_CLIENT_SECRET", "{a3}8Q~{b34}"),
    ("dropbox", "DROPBOX_TOKEN", "sl.u.{b150}"),
    ("facebook", "FB_ACCESS_TOKEN", "EAA{t180}"),
    ("adafruit", "ADAFRUIT_IO_KEY", "aio_{a28}"),
    ("typeform", "TYPEFORM_TOKEN", "tfp_{b44}_{a14}"),
    ("prefect", "PREFECT_API_KEY", "pnu_{l36}"),
    ("age", "AGE_KEY", "AGE-SECRET-KEY-1{g58}"),
    (
        "jwt",
        "SESSION_JWT",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{a80}.{b43}",
    ),
    ("password", "DB_PASSWORD", "{p20}"),
    ("generic-secret", "APP_SECRET", "{a48}"),
    (
        "postgres-url",
        "DATABASE_URL",
        "postgres://app:{a20}@db.internal:5432/app",
    ),
    (
        "mongodb-url",
        "MONGO_URL",
        "mongodb+srv://app:{a24}@cluster0.x1y2z.mongodb.net/app",
    ),
    (
        "redis-url",
        "REDIS_URL",
        "redis://default:{a32}@redis.internal:6379",
    ),
    ("pem-rsa", "TLS_KEY", "{pem RSA }"),
    ("pem-ec", "TLS_KEY", "{pem EC }"),
    ("pem-pkcs8", "TLS_KEY", "{pem }"),
    ("pem-openssh", "SSH_KEY", "{pem OPENSSH }"),
];

/// The characters of a class.
fn class(name: &str) -> &'static str {
    match name {
        "a" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "b" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        "B" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "t" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "A" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "u" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "l" => "abcdefghijklmnopqrstuvwxyz0123456789",
        "h" => "0123456789abcdef",
        "H" => "0123456789ABCDEF",
        "d" => "0123456789",
        "D" => "123456789",
        "g" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        _ => "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!#%^*_+-",
    }
}

fn draw(random: &mut Random, name: &str, count: usize) -> String {
    let class: Vec<char> = class(name).chars().collect();
    (0..count).map(|_| *random.pick(&class)).collect()
}

/// A UUID of version 4.
fn uuid(random: &mut Random) -> String {
    let mut hex = |count| draw(random, "h", count);
    format!("{}-{}-4{}-a{}-{}", hex(8), hex(4), hex(3), hex(3), hex(12))
}

/// A token of a shape.
fn token(shape: &str, random: &mut Random) -> String {
    let mut out = String::new();
    let mut rest = shape;
    while let Some((before, tail)) = rest.split_once('{') {
        let (piece, tail) = tail.split_once('}').unwrap_or((tail, ""));
        out.push_str(before);
        match piece {
            "uuid" => out.push_str(&uuid(random)),
            "crc" => {
                let body = &out[out.rfind('_').map_or(0, |at| at + 1)..];
                out.push_str(&base62(crc32(body.as_bytes())));
            }
            _ if piece.starts_with("pem") => {
                let kind = &piece[4..];
                out.push_str(&pem(kind, random));
            }
            _ => {
                let (name, count) = piece.split_at(1);
                out.push_str(&draw(random, name, count.parse().unwrap_or(1)));
            }
        }
        rest = tail;
    }
    out + rest
}

fn pem(kind: &str, random: &mut Random) -> String {
    let count = random.range(3, 26);
    let mut lines: Vec<String> = (0..count).map(|_| draw(random, "B", 64)).collect();
    lines.push(draw(random, "B", 38) + "==");
    format!(
        "-----BEGIN {kind}PRIVATE KEY-----\n{}\n-----END {kind}PRIVATE KEY-----",
        lines.join("\n")
    )
}

/// The checksum of zip files.
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = !0_u32;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
        }
    }
    !sum
}

fn base62(mut number: u32) -> String {
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut out = [b'0'; 6];
    for place in out.iter_mut().rev() {
        *place = digits[(number % 62) as usize];
        number /= 62;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Text in base64, in lines of `width`.
pub fn base64(bytes: &[u8], width: usize) -> String {
    let digits = class("B").as_bytes();
    let mut out = Vec::new();
    for three in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=three.len()].copy_from_slice(three);
        let word = u32::from_be_bytes(word);
        for place in 0..4 {
            out.push(match place <= three.len() {
                true => digits[(word >> (18 - 6 * place) & 63) as usize],
                false => b'=',
            });
        }
    }
    let lines: Vec<&[u8]> = out.chunks(width).collect();
    String::from_utf8_lossy(&lines.join(&b'\n')).into_owned()
}

/// Where people and tools write secrets; `NAME` and `VALUE` are put in.
const AROUND: &[&str] = &[
    "# settings of the app\nPORT=8080\nNAME=VALUE\nDEBUG=false\n",
    "export NAME=\"VALUE\"",
    "services:\n  app:\n    environment:\n      NAME: VALUE\n      LOG_LEVEL: info\n",
    "{\n  \"port\": 8080,\n  \"NAME\": \"VALUE\",\n  \"retries\": 3\n}",
    "const client = new Client({ NAME: 'VALUE', timeout: 3000 });",
    "[2026-01-03 10:11:12] INFO starting with NAME=VALUE pid=4711",
    "NAME = \"VALUE\"  # from the console\nregion = \"eu-west-1\"\n",
    "Here it is: NAME=VALUE, please put it into the deployment.",
];

/// For tokens that can be told by themselves: nothing says what they are.
const BARE: &[&str] = &[
    "curl -sS -H \"Authorization: Bearer VALUE\" https://api.example.com/v1/me",
    "try this one: VALUE\n",
    "| me | VALUE | 2026-01-03 |",
    "login(VALUE)",
];

/// A text with a secret: before it, it, behind it.
fn text(family: &Family, random: &mut Random) -> (String, String, String) {
    let (name, variable, shape) = *family;
    let value = token(shape, random);
    let is_telling = shape
        .split('{')
        .next()
        .is_some_and(|prefix| prefix.len() >= 3);
    let is_pem = name.starts_with("pem");
    let around = match is_telling && random.chance(35) && !is_pem {
        true => *random.pick(BARE),
        // A value of many lines stands between quotes or alone.
        false if is_pem => *random.pick(&["$ cat key.pem\nVALUE\n$ ", "NAME=\"VALUE\"\n"]),
        false => *random.pick(AROUND),
    };
    let around = around.replace("NAME", variable);
    let (before, after) = around.split_once("VALUE").unwrap_or_default();
    (before.to_owned(), value, after.to_owned())
}

/// How a secret may be written.
pub const FORMS: &[&str] = &["plain", "escaped", "unicode", "colour", "base64", "wrapped"];

/// A sample of a family in a form.
pub fn sample(family: &Family, form: &'static str, random: &mut Random) -> Sample {
    let (before, value, after) = text(family, random);
    let escape = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let (before, secret, after) = match form {
        // JSON text inside a string of the line.
        "escaped" => {
            let inner = |text: &str| escape(&escape(text));
            let before = format!("{{\\\"stdout\\\":\\\"{}", inner(&before));
            (before, inner(&value), inner(&after) + "\\\"}")
        }
        // Every mark is written as a number, as careful writers of JSON do.
        "unicode" => {
            let mark = |c: char| match c {
                '-' | '_' | '/' | '.' | ':' | '+' => format!("\\u{:04x}", c as u32),
                c => escape(&c.to_string()),
            };
            let value: String = value.chars().map(mark).collect();
            (escape(&before), value, escape(&after))
        }
        // A tool marks a part of it.
        "colour" => {
            let at = value.len() / 2;
            let (head, tail) = value.split_at(at);
            let value = format!("{head}\u{1b}[1;31m{tail}");
            (
                escape(&before),
                escape(&value),
                "\\u001b[0m".to_owned() + &escape(&after),
            )
        }
        "base64" | "wrapped" => {
            let whole = format!("{before}{value}{after}\nend of the file\n");
            let width = if form == "wrapped" { 76 } else { usize::MAX };
            let packed = escape(&base64(whole.as_bytes(), width));
            ("content: ".to_owned(), packed, "\\n".to_owned())
        }
        _ => (escape(&before), escape(&value), escape(&after)),
    };
    let (head, tail) = around_line(random);
    let start = head.len() + before.len();
    Sample {
        family: family.0,
        form,
        secret: Some(start..start + secret.len()),
        line: format!("{head}{before}{secret}{after}{tail}"),
    }
}

/// What stands before and behind the text on a line of a transcript.
fn around_line(random: &mut Random) -> (String, String) {
    let (id, parent) = (uuid(random), uuid(random));
    let call = format!("toolu_01{}", draw(random, "a", 22));
    let head = format!(
        r#"{{"parentUuid":"{parent}","sessionId":"{parent}","type":"user","uuid":"{id}","message":{{"role":"user","content":["#
    );
    let (block, end) = match random.below(3) {
        0 => (r#"{"type":"text","text":""#.to_owned(), "\"}]}}"),
        1 => (
            format!(r#"{{"tool_use_id":"{call}","type":"tool_result","content":""#),
            "\"}]}}",
        ),
        _ => (
            format!(
                r#"{{"tool_use_id":"{call}","type":"tool_result","content":"ok"}}]}},"toolUseResult":{{"stdout":""#
            ),
            "\"}}",
        ),
    };
    (head + &block, end.to_owned())
}

/// Texts without secrets; classes as in shapes.
const NEGATIVES: &[(&str, &str)] = &[
    ("uuid", "session {uuid} forked from {uuid}"),
    ("uuid in code", "const id = '{uuid}'; // key of the row"),
    ("git hash", "commit {h40}\nAuthor: A B <a@example.com>\n"),
    (
        "git short",
        "{h7} fix the build\n{h7} token parser: handle quotes\n",
    ),
    (
        "git tree",
        "index {h7}..{h7} 100644\n--- a/auth.rs\n+++ b/auth.rs",
    ),
    ("npm integrity", "\"integrity\": \"sha512-{B86}==\","),
    (
        "yarn lock",
        "  resolved \"https://registry.example.org/a/-/a-1.2.3.tgz#{h40}\"",
    ),
    ("cargo lock", "checksum = \"{h64}\""),
    ("pip hash", "    --hash=sha256:{h64} \\"),
    ("go sum", "golang.org/x/text v0.3.0 h1:{B43}="),
    ("docker digest", "FROM alpine@sha256:{h64}"),
    (
        "message id",
        "\"id\": \"msg_01{a22}\", \"request\": \"req_011C{a20}\"",
    ),
    ("call id", "tool_use_id: toolu_01{a22}"),
    ("etag", "ETag: \"{h32}\""),
    ("trace", "traceparent: 00-{h32}-{h16}-01"),
    (
        "image",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{B300}==",
    ),
    (
        "font",
        "src: url(data:font/woff2;base64,d09GMgABAAAAA{B300}) format('woff2');",
    ),
    (
        "hex dump",
        "00000010: {h4} {h4} {h4} {h4} {h4} {h4} {h4} {h4}  ................",
    ),
    (
        "css",
        ".btn-{l6} { color: #{h6}; background: #{h6}; } .sk-fading-circle { width: 40px }",
    ),
    (
        "module hash",
        "dist/assets/index-{a8}.js   142.31 kB | gzip: 45.90 kB",
    ),
    ("source map", "//# sourceMappingURL=index-{a8}.js.map"),
    (
        "variable",
        "curl -H \"Authorization: Bearer $GITHUB_TOKEN\" https://api.example.com",
    ),
    (
        "placeholder",
        "export OPENAI_API_KEY=sk-your-key-here\nPASSWORD=changeme\nTOKEN=<your token>",
    ),
    ("workflow", "      token: ${{ secrets.GITHUB_TOKEN }}"),
    (
        "code",
        "let token = self.tokens.next().ok_or(Error::UnexpectedEnd)?;",
    ),
    (
        "code call",
        "const apiKey = process.env.ANTHROPIC_API_KEY ?? config.get('apiKey');",
    ),
    (
        "prose",
        "The secret of good code is that the key idea is easy to find; a password field is not.",
    ),
    (
        "usage",
        "\"usage\":{\"input_tokens\":1234,\"cache_read_input_tokens\":99999,\"output_tokens\":321}",
    ),
    ("path", "/home/dev/.cache/pip/http/{h1}/{h1}/{h40}"),
    (
        "address",
        "https://example.com/docs/{l8}/{l12}?page=3&sort=key#auth-tokens",
    ),
    (
        "public key",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{B43} dev@example",
    ),
    (
        "certificate",
        "-----BEGIN CERTIFICATE-----\nMIID{B60}\n{B64}\n-----END CERTIFICATE-----",
    ),
    ("plain base64", "{text}"),
    ("version", "rustc 1.95.0 ({h9} 2026-03-01)"),
    (
        "keyboard",
        "onKeyDown={(e) => e.key === 'ArrowDown' && setIndex(i + 1)}",
    ),
    (
        "test name",
        "test auth::tests::refresh_token_is_rotated_when_expired ... ok",
    ),
    ("kubernetes", "pod/api-{l10}-{l5}   1/1   Running   0   3d"),
    ("arn", "arn:aws:iam::{d12}:role/deploy-{l8}"),
    ("public id", "STRIPE_PRICE_ID=price_1{a23}"),
    ("build id", "BUILD_ID={h32}\nCACHE_KEY=v2-deps-{h40}"),
];

/// A line that looks as if it had a secret, and has none.
pub fn negative(which: usize, random: &mut Random) -> Sample {
    let (family, shape) = NEGATIVES[which % NEGATIVES.len()];
    let text = match shape {
        "{text}" => {
            let words = [
                "the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs",
            ];
            let text: Vec<&str> = (0..40).map(|_| *random.pick(&words)).collect();
            base64(text.join(" ").as_bytes(), 76)
        }
        shape => filled(shape, random),
    };
    let quoted = serde_json::Value::from(text).to_string();
    let (head, tail) = around_line(random);
    Sample {
        family,
        form: "negative",
        line: format!("{head}{}{tail}", &quoted[1..quoted.len() - 1]),
        secret: None,
    }
}

/// Like [`token`], for texts with braces of their own.
fn filled(shape: &str, random: &mut Random) -> String {
    let mut out = String::new();
    let mut rest = shape;
    while let Some(at) = rest.find('{') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let piece = tail[1..].split('}').next().unwrap_or_default();
        let is_class = piece.len() <= 4
            && piece.len() >= 2
            && piece[1..].bytes().all(|byte| byte.is_ascii_digit());
        if is_class || piece == "uuid" {
            out.push_str(&token(&format!("{{{piece}}}"), random));
            rest = &tail[piece.len() + 2..];
        } else {
            out.push('{');
            rest = &tail[1..];
        }
    }
    out + rest
}

/// How many negatives there are.
pub fn negatives() -> usize {
    NEGATIVES.len()
}

/// What a finder made of a set.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Of each family: how many were found, of how many.
    pub families: BTreeMap<&'static str, (usize, usize)>,
    /// Of each form.
    pub forms: BTreeMap<&'static str, (usize, usize)>,
    /// Samples that were missed.
    pub missed: Vec<Sample>,
    /// Samples in which something was found that is no secret, and what.
    pub wrong: Vec<(Sample, String)>,
}

impl Score {
    /// The share of secrets that were found.
    pub fn recall(&self) -> f64 {
        let (found, all) = self.found();
        found as f64 / all.max(1) as f64
    }

    /// The share of findings that are secrets.
    pub fn precision(&self) -> f64 {
        let found = self.found().0;
        found as f64 / (found + self.wrong.len()).max(1) as f64
    }

    fn found(&self) -> (usize, usize) {
        let sums = self.families.values();
        sums.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

impl Score {
    /// Notes what was found in a sample.
    fn take(&mut self, sample: Sample, found: &[Range<usize>]) {
        let Some(secret) = &sample.secret else {
            if let Some(one) = found.first() {
                let what = sample.line[one.clone()].to_owned();
                self.wrong.push((sample, what));
            }
            return;
        };
        // A password in an address is all that has to go; the rest may stay.
        let inner = core(&sample, secret);
        let covered = |one: &Range<usize>| one.start <= inner.start && one.end >= inner.end;
        let is_found = found.iter().any(covered);
        let beside = found
            .iter()
            .find(|one| one.end <= secret.start || one.start >= secret.end);
        if let Some(one) = beside {
            let what = sample.line[one.clone()].to_owned();
            self.wrong.push((sample.clone(), what));
        }
        for (sums, key) in [
            (&mut self.families, sample.family),
            (&mut self.forms, sample.form),
        ] {
            let sum = sums.entry(key).or_default();
            sum.0 += usize::from(is_found);
            sum.1 += 1;
        }
        if !is_found {
            self.missed.push(sample);
        }
    }
}

/// Judges a finder by `each` samples of every family in every form, and as many texts without
/// secrets. It is given lines and says where in them secrets are.
pub fn judge(seed: u64, each: usize, find: impl Fn(&[u8]) -> Vec<Range<usize>>) -> Score {
    let mut random = Random::new(seed);
    let mut score = Score::default();
    let mut take = |sample: Sample| {
        let found = find(sample.line.as_bytes());
        score.take(sample, &found);
    };
    for _ in 0..each {
        for family in FAMILIES {
            for form in FORMS {
                // What is split or escaped must have something to split or escape.
                if !(*form == "unicode" && family.2.starts_with("{pem")) {
                    take(sample(family, form, &mut random));
                }
            }
        }
        for which in 0..negatives() * FORMS.len() * 2 {
            take(negative(which, &mut random));
        }
    }
    score
}

/// The same by values that only their name tells, and by tokens that stick to something: `each`
/// samples of every place, and as many texts that hold such names and no secret.
pub fn judge_named(seed: u64, each: usize, find: impl Fn(&[u8]) -> Vec<Range<usize>>) -> Score {
    let mut random = Random::new(seed);
    let mut score = Score::default();
    let mut take = |sample: Sample| {
        let found = find(sample.line.as_bytes());
        score.take(sample, &found);
    };
    for round in 0..each {
        for which in 0..written::places() {
            take(written::sample(which, round, &mut random));
        }
        for which in 0..named::contexts() {
            take(named::sample(which, &mut random));
        }
        for which in 0..named::glued() {
            take(named::glued_sample(which, &mut random));
        }
        for which in 0..named::negatives() {
            take(named::negative(which, &mut random));
        }
        for which in 0..written::negatives() {
            take(written::negative(which, &mut random));
        }
    }
    score
}

/// The part of a sample's secret that must go: of an address the password or the last part.
fn core(sample: &Sample, secret: &Range<usize>) -> Range<usize> {
    let text = &sample.line[secret.clone()];
    let is_packed = matches!(sample.form, "base64" | "wrapped");
    let is_url = sample.family.ends_with("-url");
    let is_hook = sample.family.ends_with("-webhook") && text.contains("http");
    if is_packed || !(is_url || is_hook) {
        return secret.clone();
    }
    let end = if is_url { text.rfind('@') } else { None }.unwrap_or(text.len());
    secret.start + end - 12..secret.start + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_lines_of_json_with_the_secret_where_they_say() {
        let mut random = Random::new(1);
        for family in FAMILIES {
            for form in FORMS {
                let sample = sample(family, form, &mut random);
                let line: Result<serde_json::Value, _> = serde_json::from_str(&sample.line);
                assert!(line.is_ok(), "{}", sample.line);
                let secret = sample.secret.unwrap();
                assert!(sample.line.get(secret).is_some_and(|one| one.len() >= 16));
            }
        }
        for which in 0..negatives() {
            let line = negative(which, &mut random).line;
            assert!(
                serde_json::from_str::<serde_json::Value>(&line).is_ok(),
                "{line}"
            );
        }
    }

    #[test]
    fn checksums_are_those_of_zip_files() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(base62(61), "00000z");
        assert!(FAMILIES.len() >= 50);
    }
}
