//! Secrets that people leave in sessions, and what only looks like them.

use unspool_testkit::random::Random;

use super::sample::digits;
use super::{find, sample};
use crate::secrets::SecretFinder;

/// A text with its secret between `«` and `»`, and the rule that must find it.
#[track_caller]
fn finds(marked: &str, rule: &str) {
    let text = marked.replace(['«', '»'], "");
    let start = marked.find('«').unwrap();
    let secret = &marked[start + '«'.len_utf8()..marked.find('»').unwrap()];
    assert_eq!(find(&text), [(secret, rule)], "{text}");
    let at = SecretFinder::standard().find(&text)[0].range.start;
    assert_eq!(at, start, "{text}");
}

#[track_caller]
fn finds_nothing(text: &str) {
    assert_eq!(find(text), [], "{text}");
}

fn random() -> Random {
    Random::new(3)
}

fn made(regex: &str) -> String {
    sample(regex, &mut random())
}

#[test]
fn keys_of_anthropic() {
    for (kind, rule) in [
        ("api03", "anthropic-api-key"),
        ("admin01", "anthropic-admin-api-key"),
        ("oat01", "anthropic-oauth-token"),
        ("ort01", "anthropic-oauth-token"),
        ("sid01", "anthropic-token"),
    ] {
        let key = format!("sk-ant-{kind}-{}", made("[A-Za-z0-9_-]{90}AA"));
        finds(&format!("ANTHROPIC_API_KEY=«{key}»\n"), rule);
        finds(&format!("用密钥«{key}»。"), rule);
        finds(&format!("x-api-key: «{key}»"), rule);
        finds(&format!("(«{key}»),"), rule);
    }
    finds_nothing("set it to sk-ant-… or sk-ant-api03-xxx");
}

#[test]
fn keys_of_langfuse_openai_and_their_like() {
    let uuid = made("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}");
    finds(
        &format!("LANGFUSE_SECRET_KEY=«sk-lf-{uuid}»"),
        "langfuse-secret-key",
    );
    finds(&format!("'«pk-lf-{uuid}»'"), "langfuse-public-key");
    let long = digits(120, &mut random());
    finds(
        &format!("OPENAI_API_KEY=«sk-proj-{long}»"),
        "openai-api-key",
    );
    finds(&format!("key «sk-{}».", &long[..48]), "openai-api-key");
    finds(
        &format!("«sk-or-v1-{}»", made("[0-9a-f]{64}")),
        "openrouter-api-key",
    );
    finds_nothing("class=\"sk-fading-circle sk-circle-bounce\"");
}

#[test]
fn tokens_of_hosts_and_clouds() {
    let mut random = random();
    let mut some = |count| digits(count, &mut random);
    finds(&format!("«ghp_{}»", some(36)), "github-pat");
    finds(
        &format!("«github_pat_{}»", some(82)),
        "github-fine-grained-pat",
    );
    finds(
        &format!("https://oauth2:«glpat-{}»@gitlab.com/a/b", some(20)),
        "gitlab-pat",
    );
    finds(
        &format!("«xoxb-1234567890-{}»", some(24)),
        "slack-bot-token",
    );
    finds(&format!("«npm_{}»", some(36)), "npm-access-token");
    finds(&format!("«hf_{}»", some(34)), "huggingface-access-token");
    finds(
        &format!("stripe «sk_live_{}»", some(24)),
        "stripe-access-token",
    );
    finds(&format!("«AIza{}»", some(35)), "gcp-api-key");
    finds(
        &format!("«AKIA{}»", made("[A-Z2-7]{16}")),
        "aws-access-token",
    );
    let secret = made("[A-Za-z0-9+/]{38}7Q");
    finds(
        &format!("aws_secret_access_key = «{secret}»\n"),
        "aws-secret-access-key",
    );
    finds(
        &format!("\"SecretAccessKey\": \"«{secret}»\","),
        "aws-secret-access-key",
    );
    finds(
        &format!("AccountKey=«{}==»;Endpoint", made("[A-Za-z0-9+/]{86}")),
        "azure-storage-key",
    );
    finds_nothing(&format!("AKIA{}EXAMPLE", "IOSFODNN7"));
}

#[test]
fn web_tokens() {
    let jwt = format!(
        "eyJ{}.eyJ{}.{}",
        made("[A-Za-z0-9]{33}"),
        made("[A-Za-z0-9_-]{80}"),
        made("[A-Za-z0-9_-]{43}")
    );
    finds(&format!("Authorization: Bearer «{jwt}»"), "jwt");
    finds(&format!("Cookie: session=«{jwt}»; path=/"), "jwt");
    finds(&format!("«{jwt}»"), "jwt");
    finds_nothing("eyJhbGciOi… is how a token begins");
}

#[test]
fn private_keys_of_many_lines() {
    let line = || made("[A-Za-z0-9+/]{64}");
    for kind in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
        let dashes = "-----";
        let key = format!(
            "{dashes}BEGIN {kind}PRIVATE KEY{dashes}\n{}\n{}=\n{dashes}END {kind}PRIVATE KEY{dashes}",
            line(),
            line()
        );
        finds(&format!("cat id_rsa\n«{key}»\n"), "private-key");
        // In the text of a JSON file, or numbered as a tool shows it.
        finds(
            &format!("\"key\": \"«{}»\"", key.replace('\n', "\\n")),
            "private-key",
        );
        finds(
            &format!("1→«{}»\n", key.replace('\n', "\n 2→")),
            "private-key",
        );
        // Cut off by `head`.
        let cut = key.lines().take(2).collect::<Vec<_>>().join("\n");
        finds(&format!("«{cut}»"), "private-key");
    }
    let dashes = "-----";
    finds_nothing(&format!(
        "look for {dashes}BEGIN RSA PRIVATE KEY{dashes} in files"
    ));
    finds_nothing(&format!(
        "{dashes}BEGIN CERTIFICATE{dashes}\n{}\n{dashes}END CERTIFICATE{dashes}",
        line()
    ));
}

#[test]
fn headers_and_addresses() {
    let token = digits(32, &mut random());
    finds(
        &format!("curl -H 'Authorization: Bearer «{token}»' x"),
        "authorization-header",
    );
    finds(
        &format!("\"Authorization\": \"Basic «{token}==»\""),
        "authorization-header",
    );
    finds(
        &format!("headers = {{\"X-Api-Key\": \"«{token}»\"}}"),
        "api-key-header",
    );
    finds(
        "postgres://app:«s3cr3t-Pa55»@db.internal:5432/app",
        "url-password",
    );
    finds("redis://:«p4ssw0rd!x»@cache:6379", "url-password");
    finds(
        &format!("git clone https://«{token}»@github.com/a/b"),
        "url-token",
    );
    finds("curl -s -u admin:«Tr0ub4dor&3» https://x", "curl-auth-user");
    for text in [
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <your-token>",
        "Authorization: Bearer YOUR_API_TOKEN",
        "`Authorization: Bearer undefined`",
        "postgres://user:password@localhost/db",
        "postgres://$USER:$PASS@localhost/db",
        "postgres://${USER}:${PASS}@localhost/db",
        "http://localhost:3000,me@example.com",
        "http://localhost:3000/@scope/pkg",
        "docker://alpine:3.8@sha256",
        "curl -u user:password https://x",
        "docker run -u 1000:1000 x",
    ] {
        finds_nothing(text);
    }
}

#[test]
fn values_that_are_called_secret() {
    let value = digits(32, &mut random());
    for text in [
        "API_KEY=«{}»",
        "api_key: «{}»",
        "\"clientSecret\": \"«{}»\"",
        "?token=«{}»&x=1",
    ] {
        finds(&text.replace("{}", &value), "generic-api-key");
    }
    for text in [
        "password = '«{}»'",
        "export DB_PASSWORD=«{}»;",
        "pwd: \"«{}»\",",
    ] {
        finds(&text.replace("{}", "Xy7!kd@93jd"), "password-assignment");
        finds(&text.replace("{}", &value), "password-assignment");
    }
    // Also behind a weaker name: random letters are not taken for words.
    let mut found = 0;
    for seed in 0..100 {
        let value = digits(32, &mut Random::new(seed));
        found += find(&format!("TOKEN={value}")).len();
    }
    assert!(found >= 95, "{found} of 100");
    let hex = made("[0-9a-f]{32}");
    finds(
        &format!("API_KEY={}", format_args!("«{hex}»")),
        "generic-api-key",
    );
}

#[test]
fn ids_and_hashes_are_no_secrets() {
    let hex = |count: usize| made(&format!("[0-9a-f]{{{count}}}"));
    let id = digits(24, &mut random());
    let uuid = made("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}");
    let texts = [
        format!("\"uuid\":\"{uuid}\",\"sessionId\":\"{uuid}\""),
        format!("key: {uuid}"),
        format!("token {uuid}"),
        format!("commit {}", hex(40)),
        format!("cache key: {}", hex(40)),
        format!("key = {}", hex(64)),
        format!("auth: msg_01{id}"),
        format!("token: toolu_01{id}"),
        format!("key=req_011{id}"),
        format!("sha256:{}", hex(64)),
        format!("integrity sha512-{}==", made("[A-Za-z0-9+/]{86}")),
        format!("\"signature\":\"{}==\"", made("[A-Za-z0-9+/]{300}")),
        format!("md5 {}  file.txt", hex(32)),
        "model key: claude-sonnet-4-5-20250929".to_owned(),
    ];
    for text in texts {
        finds_nothing(&text);
    }
}

#[test]
fn code_and_prose_hold_no_secrets() {
    for text in [
        "The token budget is 200000; input_tokens: 12345, output_tokens: 678.",
        "const apiKey = process.env.ANTHROPIC_API_KEY;",
        "let token = self.tokens.next().unwrap_or_default();",
        "password: string; secret?: Buffer;",
        "api_key=os.environ[\"OPENAI_API_KEY\"]",
        "if (key === 'ArrowDown2') return;",
        "key: \"src/components/Button2.tsx\"",
        "import { AccessToken } from './auth/token2';",
        "Linkedin profile: johnsmithabcde",
        "--access-token <TOKEN>, --api-key=$KEY",
        "token: xxxxxxxxxxxxxxxxxxxxxxxx",
        "secret: {{ .Values.secretName }}",
        "password: ********************",
        "isinstance(key, Ed25519PrivateKey)",
        "DHPrivateKey,\n    ed25519.Ed25519PrivateKey,",
        "RegEnumKey = win32api.RegEnumKey",
        "\"result_key\": \"Ipv6CidrAssociations\"",
        "\"NextToken\": \"U1FsdGVkX19nBV2zoh+Gou9NgnulLJHWpn9xnG4hqSOfvw3o2JqjI86QDxef\"",
        "arn:aws:secretsmanager:us-west-2:123456789012:secret:Prod-1a2b3c",
        "password = getPassword(user2)",
        "PASSWORD=$(cat /run/secrets/db2)",
        "PWD=/home/user2/project",
        "password: 'test1234'",
        "public_key = 3fa85f6457174562b3fc2c963f66afa6",
    ] {
        finds_nothing(text);
    }
}

#[test]
fn values_that_only_their_name_tells_are_masked_to_their_end() {
    for text in [
        "DB_PASS=«p@ss:w0rd!#$»\n",
        "export DB_PASSWORD='«correct horse battery staple»'",
        "password: \"«short»\"",
        "{\"user\":\"app\",\"pwd\":\"«hunter2»\"}",
        "db.password=«Tr0ub4dor&3»\n",
        "  password: «swordfish»\n",
        "Server=db;Uid=app;Pwd=«S3cret!x»;Encrypt=true",
        "psql \"host=db password=«Winter2024!» dbname=app\"",
        "./run --db-password=«a1-b2,c3»",
        "./run --db-password «hunter2» --verbose",
        ":password => '«x7:y8/z9»'",
        "password := \"«hunter2»\"",
        "let password: &str = \"«hunter2»\";",
        "- name: DB_PASSWORD\n  value: «hunter2!»\n",
        "{\"name\": \"DB_PASSWORD\", \"value\": \"«hunter2!»\"}",
        "<password>«hunter2»</password>",
        "the password is «hunter2»",
        "[sudo] password for dev: «hunter2»\n",
        "CREATE ROLE app PASSWORD '«hunter2»';",
        "DB_PASSWORD=${DB_PASSWORD:-«hunter2»}",
    ] {
        let plain = text.replace(['«', '»'], "");
        let found = find(&plain);
        // Where an expression finds the same, it gives the name.
        let rule = found.first().map_or("named-password", |(_, rule)| rule);
        assert!(["named-password", "password-assignment"].contains(&rule));
        finds(text, rule);
    }
    let random = digits(40, &mut random());
    for text in [
        "RAILS_MASTER_KEY=«{}»\n",
        "  secret_key_base: «{}»\n",
        "SECRET_KEY = '«{}»'",
        "AWS Secret Access Key [None]: «{}»\n",
    ] {
        let text = text.replace("{}", &random);
        let plain = text.replace(['«', '»'], "");
        let found = find(&plain);
        assert_eq!(found.len(), 1, "{plain}");
        assert_eq!(found[0].0, random, "{plain}");
    }
    finds(
        &format!("Cookie: theme=dark; sid=«{random}»; lang=en"),
        "cookie",
    );
}

#[test]
fn passwords_on_command_lines_and_in_files_of_their_own() {
    finds("mysql -uroot -p«s3cr3t!» app", "mysql-password");
    finds("sshpass -p '«my pass 9»' ssh host", "sshpass-password");
    finds(
        "docker login -u app -p «hunter2» registry",
        "login-password",
    );
    finds("redis-cli -h db -a «hunter2» ping", "client-password");
    finds(
        "machine api.internal login app password «hunter2»\n",
        "netrc-password",
    );
    finds("db.internal:5432:app:app:«hunter2»\n", "pgpass-password");
    finds(
        "CREATE USER 'a'@'%' IDENTIFIED BY '«hunter2»';",
        "sql-password",
    );
    finds(
        "postgres://app:«p@ss:w0rd!»@db.internal/app",
        "url-password",
    );
    for text in [
        "mysql -u root -p app",
        "sshpass -e ssh host",
        "docker run -p 8080:80 app",
        "redis-cli -a \"$PASS\" ping",
        "mkdir -p src/app",
    ] {
        finds_nothing(text);
    }
}

#[test]
fn what_sticks_to_a_token_or_splits_it_does_not_hide_it() {
    let body = made("[A-Za-z0-9]{90}AA");
    finds(
        &format!("token«sk-ant-oat01-{body}»"),
        "anthropic-oauth-token",
    );
    let token = format!("{}:AA{}", made("[1-9][0-9]{9}"), made("[A-Za-z0-9_-]{33}"));
    finds(
        &format!("https://api.telegram.org/bot«{token}»/getMe"),
        "telegram-bot-api-token",
    );
    for mark in ['\u{200b}', '\u{200d}', '\u{feff}', '\u{2060}', '\u{ad}'] {
        let split = format!("sk-ant-api03-{}{mark}{}", &body[..20], &body[20..]);
        finds(&format!("use «{split}» now"), "anthropic-api-key");
        let password = format!("pass{mark}word=\"hunter2!x\"");
        assert!(!SecretFinder::standard().mask(&password).contains("hunter2"));
    }
}

#[test]
fn names_of_secrets_without_a_secret_are_left_alone() {
    for text in [
        "password = get_password()",
        "token: string",
        "key: value",
        "primary_key = \"id\"",
        "\"key\": \"name\"",
        "max_tokens: 4096",
        "tokens=123",
        "password: your-password-here",
        "PASSWORD=<password>",
        "DB_PASSWORD=${DB_PASS}",
        "password: xxxx",
        "password: ***",
        "password=os.environ['X']",
        "password: &str,",
        "secret: Option<String>,",
        "\"password\": \"Passwort\"",
        "password: 'Password is required'",
        "token expired",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db\n",
        "def extract(self, path=None, pwd=None):",
        "\"fs-minipass\": \"^3.0.0\",",
        "/// Full Gregorian year (FW=4, PW=∞).",
        "Year divided by 100 (century number; FW=PW=2). Implies",
        "decodes url.password for authorization header [#3](https://github.com/nodejs/node/pull/39310)",
    ] {
        finds_nothing(text);
    }
}
