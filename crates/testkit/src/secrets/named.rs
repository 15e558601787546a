//! Labelled values that are told by their name alone: passwords, secrets, keys and tokens in
//! the places where people and programs write them, and code and text that only looks so.
//!
//! Written from how shells, settings, programs and people write such values, not from the rules
//! of a finder. `NAME` and `VALUE` are put into each context; the label is where the value is.

use crate::random::Random;

use super::{Sample, around_line, draw, filled, token, uuid};

/// What kind of value a name calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A password: chosen by a person, or random.
    Password,
    /// A secret, a key or a token: random.
    Key,
}

/// What may stand in a place without ending the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fits {
    /// Anything but the quote: several words too.
    Quoted,
    /// No blank and no quote.
    Bare,
    /// What may stand in an address, `@` among it.
    Address,
    /// Letters, digits and a few marks.
    Plain,
}

/// A family: its name, what fits there, how names are written, and the text.
type Context = (&'static str, Fits, Case, &'static str);

/// How the name of a setting is written in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Snake,
    Camel,
    Pascal,
    Dotted,
    Kebab,
    /// The place names it itself; the value is a password.
    Own,
    /// The same; the value is a key.
    OwnKey,
}

const CONTEXTS: &[Context] = &[
    (
        "env file",
        Fits::Bare,
        Case::Upper,
        "PORT=8080\nNAME=VALUE\nDEBUG=false\n",
    ),
    (
        "env file quoted",
        Fits::Quoted,
        Case::Upper,
        "NAME=\"VALUE\"\n",
    ),
    (
        "env file single",
        Fits::Quoted,
        Case::Upper,
        "PORT=80\nNAME='VALUE'\n",
    ),
    ("export", Fits::Bare, Case::Upper, "export NAME=VALUE\n"),
    (
        "export quoted",
        Fits::Quoted,
        Case::Upper,
        "$ export NAME='VALUE' && make run",
    ),
    (
        "command env",
        Fits::Bare,
        Case::Upper,
        "NAME=VALUE ./bin/server --port 80",
    ),
    (
        "docker run",
        Fits::Bare,
        Case::Upper,
        "docker run -d -e NAME=VALUE -p 80:80 app:latest",
    ),
    (
        "dockerfile",
        Fits::Bare,
        Case::Upper,
        "FROM alpine\nENV NAME=VALUE\nRUN make\n",
    ),
    (
        "compose map",
        Fits::Bare,
        Case::Upper,
        "    environment:\n      NAME: VALUE\n      LOG: info\n",
    ),
    (
        "compose list",
        Fits::Bare,
        Case::Upper,
        "    environment:\n      - NAME=VALUE\n      - LOG=info\n",
    ),
    (
        "properties",
        Fits::Bare,
        Case::Dotted,
        "server.port=8080\nspring.NAME=VALUE\n",
    ),
    (
        "properties spaced",
        Fits::Bare,
        Case::Dotted,
        "jdbc.NAME = VALUE\njdbc.url = jdbc:h2:mem\n",
    ),
    (
        "ini",
        Fits::Bare,
        Case::Snake,
        "[database]\nhost = db\nNAME = VALUE\nport = 5432\n",
    ),
    (
        "ini tight",
        Fits::Bare,
        Case::Snake,
        "[client]\nuser=app\nNAME=VALUE\n",
    ),
    (
        "toml",
        Fits::Quoted,
        Case::Snake,
        "[db]\nuser = \"app\"\nNAME = \"VALUE\"\n",
    ),
    (
        "toml literal",
        Fits::Quoted,
        Case::Snake,
        "NAME = 'VALUE' # rotate\n",
    ),
    (
        "yaml",
        Fits::Bare,
        Case::Snake,
        "db:\n  user: app\n  NAME: VALUE\n  pool: 5\n",
    ),
    (
        "yaml quoted",
        Fits::Quoted,
        Case::Snake,
        "db:\n  NAME: \"VALUE\"\n",
    ),
    (
        "yaml single",
        Fits::Quoted,
        Case::Kebab,
        "auth:\n  NAME: 'VALUE'\n",
    ),
    (
        "yaml flow",
        Fits::Quoted,
        Case::Snake,
        "db: {user: app, NAME: \"VALUE\", pool: 5}\n",
    ),
    (
        "json",
        Fits::Quoted,
        Case::Camel,
        "{\"user\":\"app\",\"NAME\":\"VALUE\",\"pool\":5}",
    ),
    (
        "json pretty",
        Fits::Quoted,
        Case::Snake,
        "{\n  \"user\": \"app\",\n  \"NAME\": \"VALUE\"\n}",
    ),
    (
        "json in a string",
        Fits::Quoted,
        Case::Camel,
        "curl -d \"{\\\"user\\\":\\\"app\\\",\\\"NAME\\\":\\\"VALUE\\\"}\" http://localhost/login",
    ),
    (
        "python",
        Fits::Quoted,
        Case::Snake,
        "conn = connect(host='db', NAME='VALUE', port=5432)",
    ),
    (
        "python constant",
        Fits::Quoted,
        Case::Upper,
        "NAME = \"VALUE\"\nDEBUG = True\n",
    ),
    (
        "python typed",
        Fits::Quoted,
        Case::Snake,
        "    NAME: str = \"VALUE\"\n",
    ),
    (
        "rust constant",
        Fits::Quoted,
        Case::Upper,
        "const NAME: &str = \"VALUE\";",
    ),
    (
        "javascript",
        Fits::Quoted,
        Case::Camel,
        "const NAME = 'VALUE';\n",
    ),
    (
        "javascript object",
        Fits::Quoted,
        Case::Camel,
        "new Pool({ user: 'app', NAME: 'VALUE', max: 5 })",
    ),
    ("go", Fits::Quoted, Case::Camel, "\tNAME := \"VALUE\"\n"),
    (
        "ruby rocket",
        Fits::Quoted,
        Case::Snake,
        "{ :user => 'app', :NAME => 'VALUE' }",
    ),
    ("ruby", Fits::Quoted, Case::Snake, "config.NAME = 'VALUE'"),
    ("php", Fits::Quoted, Case::Snake, "$NAME = 'VALUE';"),
    ("php array", Fits::Quoted, Case::Snake, "'NAME' => 'VALUE',"),
    (
        "java",
        Fits::Quoted,
        Case::Camel,
        "private static final String NAME = \"VALUE\";",
    ),
    (
        "terraform",
        Fits::Quoted,
        Case::Snake,
        "resource \"db\" \"a\" {\n  NAME = \"VALUE\"\n}",
    ),
    (
        "makefile",
        Fits::Bare,
        Case::Upper,
        "NAME ?= VALUE\nall: build\n",
    ),
    (
        "helm",
        Fits::Plain,
        Case::Camel,
        "helm upgrade app ./chart --set db.NAME=VALUE",
    ),
    (
        "literal",
        Fits::Bare,
        Case::Snake,
        "kubectl create secret generic app --from-literal=NAME=VALUE",
    ),
    (
        "flag",
        Fits::Bare,
        Case::Kebab,
        "./migrate --db-NAME=VALUE --verbose",
    ),
    (
        "flag apart",
        Fits::Bare,
        Case::Kebab,
        "./migrate --NAME VALUE --verbose",
    ),
    (
        "flag quoted",
        Fits::Quoted,
        Case::Kebab,
        "tool login --user app --NAME 'VALUE'",
    ),
    (
        "pairs yaml",
        Fits::Bare,
        Case::Upper,
        "        env:\n        - name: NAME\n          value: VALUE\n        - name: LOG\n          value: info\n",
    ),
    (
        "pairs yaml quoted",
        Fits::Quoted,
        Case::Upper,
        "- name: NAME\n  value: \"VALUE\"\n",
    ),
    (
        "pairs json",
        Fits::Quoted,
        Case::Upper,
        "\"environment\": [{\"name\": \"NAME\", \"value\": \"VALUE\"}]",
    ),
    (
        "pairs xml",
        Fits::Quoted,
        Case::Camel,
        "<add key=\"NAME\" value=\"VALUE\" />",
    ),
    (
        "xml",
        Fits::Plain,
        Case::Camel,
        "<user>app</user><NAME>VALUE</NAME>",
    ),
    (
        "log",
        Fits::Bare,
        Case::Snake,
        "2026-01-03 10:11:12 DEBUG connecting user=app NAME=VALUE pool=5",
    ),
    (
        "prompt",
        Fits::Bare,
        Case::Snake,
        "log in as app, NAME: VALUE\n",
    ),
    (
        "prompt quoted",
        Fits::Quoted,
        Case::Snake,
        "Please use NAME: \"VALUE\" for the tests",
    ),
    (
        "prompt code",
        Fits::Bare,
        Case::Upper,
        "It is set by `NAME=VALUE` in the unit file.",
    ),
    (
        "query",
        Fits::Plain,
        Case::Snake,
        "GET https://api.example.com/v1/items?limit=5&NAME=VALUE&page=2",
    ),
    (
        "github actions",
        Fits::Quoted,
        Case::Upper,
        "      env:\n        NAME: 'VALUE'\n",
    ),
    ("fish", Fits::Bare, Case::Upper, "set -x NAME VALUE\n"),
    (
        "powershell",
        Fits::Quoted,
        Case::Upper,
        "$env:NAME = \"VALUE\"",
    ),
    (
        "environ",
        Fits::Quoted,
        Case::Upper,
        "os.environ[\"NAME\"] = \"VALUE\"",
    ),
    // Places that name the value themselves.
    (
        "connection string",
        Fits::Plain,
        Case::Own,
        "Server=db;Database=app;User Id=app;Password=VALUE;Encrypt=true",
    ),
    (
        "connection short",
        Fits::Plain,
        Case::Own,
        "\"Data Source=db;uid=app;pwd=VALUE;\"",
    ),
    (
        "libpq",
        Fits::Bare,
        Case::Own,
        "psql \"host=db user=app password=VALUE dbname=app\"",
    ),
    (
        "userinfo",
        Fits::Address,
        Case::Own,
        "DATABASE_URL=postgres://app:VALUE@db.internal:5432/app",
    ),
    (
        "userinfo amqp",
        Fits::Address,
        Case::Own,
        "connect to amqps://app:VALUE@mq.internal/vhost please",
    ),
    (
        "mysql",
        Fits::Bare,
        Case::Own,
        "mysql -h db -u root -pVALUE app < dump.sql",
    ),
    (
        "mysqldump",
        Fits::Quoted,
        Case::Own,
        "mysqldump -uroot -p'VALUE' app > dump.sql",
    ),
    (
        "sshpass",
        Fits::Bare,
        Case::Own,
        "sshpass -p VALUE ssh root@host uptime",
    ),
    (
        "sshpass quoted",
        Fits::Quoted,
        Case::Own,
        "sshpass -p 'VALUE' scp a root@host:/b",
    ),
    (
        "docker login",
        Fits::Bare,
        Case::Own,
        "docker login -u app -p VALUE registry.internal",
    ),
    (
        "redis",
        Fits::Bare,
        Case::Own,
        "redis-cli -h cache -a VALUE ping",
    ),
    (
        "redis conf",
        Fits::Bare,
        Case::Own,
        "bind 0.0.0.0\nrequirepass VALUE\n",
    ),
    (
        "curl user",
        Fits::Plain,
        Case::Own,
        "curl -u app:VALUE https://api.internal/x",
    ),
    (
        "netrc",
        Fits::Bare,
        Case::Own,
        "machine api.internal login app password VALUE\n",
    ),
    (
        "netrc lines",
        Fits::Bare,
        Case::Own,
        "machine api.internal\n  login app\n  password VALUE\n",
    ),
    (
        "pgpass",
        Fits::Plain,
        Case::Own,
        "db.internal:5432:app:app:VALUE\n",
    ),
    (
        "pgpass any",
        Fits::Plain,
        Case::Own,
        "# cat ~/.pgpass\n*:*:*:app:VALUE\n",
    ),
    (
        "sql",
        Fits::Quoted,
        Case::Own,
        "CREATE ROLE app WITH LOGIN PASSWORD 'VALUE';",
    ),
    (
        "sql identified",
        Fits::Quoted,
        Case::Own,
        "CREATE USER 'app'@'%' IDENTIFIED BY 'VALUE';",
    ),
    (
        "sudo",
        Fits::Bare,
        Case::Own,
        "[sudo] password for dev: VALUE\n",
    ),
    (
        "dialog",
        Fits::Bare,
        Case::Own,
        "Username: app\nPassword: VALUE\nLogin succeeded\n",
    ),
    (
        "pgpassword",
        Fits::Bare,
        Case::Own,
        "PGPASSWORD=VALUE psql -h db -U app app",
    ),
    (
        "said",
        Fits::Plain,
        Case::Own,
        "the password is VALUE and the user is app",
    ),
    (
        "said quoted",
        Fits::Quoted,
        Case::Own,
        "The DB password is \"VALUE\", use it.",
    ),
    (
        "keytool",
        Fits::Bare,
        Case::Own,
        "keytool -list -keystore a.jks -storepass VALUE -v",
    ),
    (
        "wifi",
        Fits::Quoted,
        Case::Own,
        "network={\n  ssid=\"home\"\n  psk=\"VALUE\"\n}",
    ),
    (
        "short prompt",
        Fits::Quoted,
        Case::Own,
        "password: \"VALUE\"",
    ),
    (
        "wp config",
        Fits::Quoted,
        Case::Own,
        "define('DB_PASSWORD', 'VALUE');",
    ),
    (
        "aws dialog",
        Fits::Plain,
        Case::OwnKey,
        "AWS Access Key ID [None]: AKIAIOSFODNN7EXAMPLE\nAWS Secret Access Key [None]: VALUE\nDefault region name [None]: eu-west-1\n",
    ),
    (
        "aws dialog again",
        Fits::Plain,
        Case::OwnKey,
        "AWS Secret Access Key [****************f3Qz]: VALUE\n",
    ),
    (
        "cookie",
        Fits::Plain,
        Case::OwnKey,
        "Cookie: theme=dark; sessionid=VALUE; lang=en\r\n",
    ),
    (
        "set-cookie",
        Fits::Plain,
        Case::OwnKey,
        "< Set-Cookie: sid=VALUE; Path=/; HttpOnly\r\n",
    ),
    (
        "cookie flag",
        Fits::Plain,
        Case::OwnKey,
        "curl --cookie 'PHPSESSID=VALUE' https://app.internal/",
    ),
    (
        "npmrc",
        Fits::Plain,
        Case::OwnKey,
        "//registry.internal/:_authToken=VALUE\n",
    ),
    (
        "rails master",
        Fits::Plain,
        Case::OwnKey,
        "RAILS_MASTER_KEY=VALUE bin/rails credentials:show",
    ),
    (
        "rails base",
        Fits::Plain,
        Case::OwnKey,
        "production:\n  secret_key_base: VALUE\n",
    ),
    (
        "django",
        Fits::Quoted,
        Case::OwnKey,
        "SECRET_KEY = 'VALUE'\n",
    ),
];

const PASSWORDS: &[&str] = &[
    "password",
    "db password",
    "passwd",
    "db pass",
    "smtp pass",
    "root password",
    "admin password",
    "user pwd",
    "mysql root password",
    "redis password",
    "app secret",
    "client secret",
    "passphrase",
];

const KEYS: &[&str] = &[
    "api key",
    "secret key",
    "access token",
    "auth token",
    "client secret",
    "jwt secret",
    "encryption key",
    "deploy token",
    "bot token",
    "private key",
    "master key",
    "session secret",
    "refresh token",
    "webhook secret",
    "service credential",
];

/// Words that people make passwords of.
const WORDS: &[&str] = &[
    "summer", "dragon", "winter", "copper", "falcon", "orange", "thunder", "marble", "silver",
    "rocket", "garden", "mango", "tiger", "purple", "castle", "bicycle", "penguin", "walnut",
    "harbor", "velvet",
];

pub(super) fn word(random: &mut Random) -> &'static str {
    random.pick::<&str>(WORDS)
}

pub(super) fn capital(word: &str) -> String {
    word[..1].to_ascii_uppercase() + &word[1..]
}

/// A name as it is written in a place.
pub(super) fn name(words: &str, case: Case) -> String {
    let parts = words.split(' ');
    match case {
        Case::Upper => words.replace(' ', "_").to_ascii_uppercase(),
        Case::Snake => words.replace(' ', "_"),
        Case::Kebab => words.replace(' ', "-"),
        Case::Dotted => words.replace(' ', "."),
        Case::Pascal => parts.map(capital).collect(),
        _ => {
            let mut out = String::new();
            for (at, part) in parts.enumerate() {
                match at {
                    0 => out.push_str(part),
                    _ => out.push_str(&capital(part)),
                }
            }
            out
        }
    }
}

/// A password as people choose and programs make them, and what it is like.
fn password(fits: Fits, random: &mut Random) -> String {
    let (one, two) = (word(random), word(random));
    let number = random.range(10, 2030);
    match random.below(9) {
        0 => format!("{}{number}!", capital(one)),
        1 => format!("{one}{}", random.range(1, 99)),
        2 => one.replace('a', "4").replace('e', "3").replace('o', "0") + "7",
        3 => format!("{one}-{two}-{}-{}", word(random), word(random)),
        4 if fits == Fits::Quoted => format!("{one} {two} {} {}", word(random), word(random)),
        4 => format!("{}_{}{number}", capital(one), capital(two)),
        5 => {
            let count = random.range(8, 13) as usize;
            draw(random, "a", count) + "9k"
        }
        6 => {
            let count = random.range(12, 25) as usize;
            draw(random, "a", count)
        }
        7 if fits == Fits::Plain => format!("{}{number}", capital(one)),
        _ => marked(fits, random),
    }
}

/// A password full of marks.
fn marked(fits: Fits, random: &mut Random) -> String {
    let marks = match fits {
        Fits::Quoted => "!@#%^&*()-_=+[]{};:,.?/|~",
        Fits::Bare => "!@#%^*-_=+:.?/~$",
        Fits::Address => "!@%*-_=+.~$",
        Fits::Plain => "!*-_.",
    };
    let marks: Vec<char> = marks.chars().collect();
    let mut value = draw(random, "t", 2);
    for _ in 0..random.range(3, 7) {
        value.push(*random.pick(&marks));
        value.push_str(&draw(random, "a", 2));
    }
    value + "7"
}

/// A key as programs make them.
fn key(fits: Fits, random: &mut Random) -> String {
    let count = random.range(20, 65) as usize;
    match random.below(5) {
        0 => draw(random, "h", 32),
        1 => draw(random, "h", 64),
        2 if fits != Fits::Plain => draw(random, "B", 43) + "=",
        3 => draw(random, "b", count - 1) + "9",
        4 if fits == Fits::Quoted => draw(random, "p", count),
        _ => draw(random, "a", count - 1) + "4",
    }
}

/// How many contexts there are.
pub fn contexts() -> usize {
    CONTEXTS.len()
}

/// A text with a value that its name tells: before it, it, behind it.
fn text(which: usize, random: &mut Random) -> (&'static str, String, String, String) {
    let (family, fits, case, around) = CONTEXTS[which % CONTEXTS.len()];
    let kind = match case {
        Case::Own => Kind::Password,
        Case::OwnKey => Kind::Key,
        _ if random.chance(55) => Kind::Password,
        _ => Kind::Key,
    };
    let (words, value) = match kind {
        Kind::Password => {
            let words = *random.pick(PASSWORDS);
            (words, password(fits, random))
        }
        Kind::Key => (*random.pick(KEYS), key(fits, random)),
    };
    let around = around.replace("NAME", &name(words, case));
    let (before, after) = around.split_once("VALUE").unwrap_or_default();
    (family, before.to_owned(), value, after.to_owned())
}

/// A sample of a context.
pub fn sample(which: usize, random: &mut Random) -> Sample {
    let (family, before, value, after) = text(which, random);
    let escape = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let (head, tail) = around_line(random);
    let (before, value, after) = (escape(&before), escape(&value), escape(&after));
    let start = head.len() + before.len();
    Sample {
        family,
        form: "named",
        secret: Some(start..start + value.len()),
        line: format!("{head}{before}{value}{after}{tail}"),
    }
}

/// Tokens of a known form where something sticks to them.
const GLUED: &[(&str, &str, &str)] = &[
    (
        "telegram url",
        "curl https://api.telegram.org/botVALUE/getMe",
        "{D1}{d9}:AA{b33}",
    ),
    (
        "telegram short url",
        "https://api.telegram.org/botVALUE/sendMessage?chat_id=1",
        "{D1}{d8}:AA{b33}",
    ),
    ("glued word", "tokenVALUE", "sk-ant-oat01-{b93}AA"),
    ("glued word", "keyVALUE and more", "sk-ant-api03-{b93}AA"),
    ("glued name", "my_VALUE", "ghp_{a30}{crc}"),
    ("glued name", "TOKEN_VALUE", "github_pat_{a22}_{a59}"),
    ("glued name", "deployVALUE", "glpat-{b20}"),
    ("glued name", "xVALUE", "xoxb-{d12}-{d13}-{a24}"),
    ("glued path", "/tmp/cache_VALUE/x", "npm_{a30}{crc}"),
];

/// How many of them there are.
pub fn glued() -> usize {
    GLUED.len() * 2
}

/// A token of a known form that is glued to a word, or split by characters without width.
pub fn glued_sample(which: usize, random: &mut Random) -> Sample {
    let (family, around, shape) = GLUED[which % GLUED.len()];
    let mut value = token(shape, random);
    let is_split = which / GLUED.len() % 2 == 1;
    if is_split {
        let marks = [
            '\u{200b}', '\u{200d}', '\u{feff}', '\u{2060}', '\u{ad}', '\u{200c}',
        ];
        for _ in 0..random.range(1, 4) {
            let at = random.range(3, value.len() as u64 - 2) as usize;
            if value.is_char_boundary(at) {
                value.insert(at, *random.pick(&marks));
            }
        }
    }
    let (before, after) = around.split_once("VALUE").unwrap_or_default();
    let (head, tail) = around_line(random);
    let start = head.len() + before.len();
    Sample {
        family: if is_split { "zero width" } else { family },
        form: "glued",
        secret: Some(start..start + value.len()),
        line: format!("{head}{before}{value}{after}{tail}"),
    }
}

/// Code and text with the names of secrets, and none in it.
const NEGATIVES: &[&str] = &[
    "password = get_password()",
    "password = getpass.getpass()",
    "self.password = password",
    "token: string;",
    "password: str",
    "password: &str,",
    "secret: Option<String>,",
    "let password = args.password.clone();",
    "primary_key = \"id\"",
    "\"key\": \"name\"",
    "max_tokens: 4096",
    "tokens=123",
    "\"input_tokens\": 4711",
    "keyboard: us",
    "monkey = \"george\"",
    "password: your-password-here",
    "PASSWORD=<password>",
    "DB_PASSWORD=${DB_PASS}",
    "password=$PASSWORD",
    "printf(\"password: %s\", pw)",
    "password: xxxx",
    "password: ***",
    "PASSWORD=changeme",
    "const token = process.env.API_TOKEN",
    "key = os.environ[\"SECRET_KEY\"]",
    "SECRET_KEY = os.environ.get('SECRET_KEY')",
    "\"password\": \"Passwort\"",
    "\"password\": \"Mot de passe\"",
    "ERROR token expired after 3600s",
    "token expired",
    "password: string",
    "password: 'Password is required'",
    "password: \"Enter your password\"",
    "<label for=\"password\">Password</label>",
    "<input type=\"password\" name=\"password\" autocomplete=\"current-password\">",
    "type: 'password'",
    "@keyframes spin { from { transform: rotate(0) } }",
    "<div key={item.id}>",
    "key={index}",
    "key: 'ArrowDown'",
    "if (event.key === 'Enter') {",
    "for (const [key, value] of Object.entries(x)) {",
    "map.insert(key, value);",
    "#[serde(rename = \"secretKey\")]",
    "foreign_key: true",
    "KEY `idx_user` (`user_id`)",
    "PRIMARY KEY (id)",
    "password_hash = hash(password)",
    "assert_eq!(token.kind, TokenKind::Ident);",
    "token = lexer.next_token()",
    "def test_password_is_checked(self):",
    "secretName: app-tls",
    "secret: my-app-tls",
    "valueFrom:\n  secretKeyRef:\n    name: app\n    key: password",
    "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db\n",
    "token = request.headers.get('Authorization')",
    "password: null",
    "password=None",
    "password: true",
    "\"password\": \"required|min:8\"",
    "token_type: bearer",
    "access_token: {{ access_token }}",
    "api_key: ${{ secrets.API_KEY }}",
    "apiKey: import.meta.env.VITE_API_KEY",
    "private String password;",
    "public_key = \"ssh-ed25519 AAAA\"",
    "cache_key = f\"user:{user_id}\"",
    "key: value",
    "  key: config.yaml",
    "sort_key = lambda x: x[1]",
    "$password = $_POST['password'];",
    "password = params[:password]",
    "validates :password, length: { minimum: 8 }",
    "passwordField.text = \"\"",
    "Password must be at least 8 characters long.",
    "The password is stored as a hash.",
    "your password is required",
    "pass: 12, fail: 0",
    "tests: 3 pass, 1 fail",
    "pass",
    "\"pass\": true",
    "bypass = \"yes\"",
    "compass: north",
    "checksum = \"{h64}\"",
    "\"integrity\": \"sha512-{B86}==\"",
    "commit {h40}",
    "cache-key: v1-{h40}",
    "id: {uuid}",
    "key: {uuid}",
    "token: {uuid}",
    "ssh-rsa AAAAB3NzaC1yc2E{B200} dev@example",
    "idempotency_key = \"{uuid}\"",
    "nextToken: \"{B40}\"",
    "style=\"--key-color: #{h6}\"",
    "msgid \"password\"\nmsgstr \"Passwort\"",
    "let secret = Secret::new(value);",
    "secret = hmac.new(key, msg)",
    "pub fn token(&self) -> &str {",
    "impl Token { fn key(&self) {} }",
    "password -> hashed",
    "vault kv get -field=password secret/app",
    "kubectl get secret app -o yaml",
    "aws secretsmanager get-secret-value --secret-id app",
    "git credential fill",
    "credentials: 'include'",
    "credentials: same-origin",
    "withCredentials: true",
    "auth: none",
    "auth: required",
    "AUTH=basic",
    "Set-Cookie: theme=dark; Path=/",
    "Cookie: lang=en; theme=light",
    "cookie: true",
    "cookies = requests.cookies",
    "mysql -h db -u root -p app",
    "sshpass -e ssh host",
    "docker run -p 8080:80 app",
    "ssh -p 2222 host",
    "mkdir -p src/app",
    "redis-cli -a \"$REDIS_PASS\" ping",
    "curl -u \"$USER:$PASS\" https://x",
    "password: !vault |",
    "token: !Ref Token",
    "api_key = settings.API_KEY",
    "password = self._password",
    "secret_key: String::from_utf8(bytes)?",
    "SECRET_KEY_PATH=/etc/app/key.pem",
    "PASSWORD_FILE=/run/secrets/db",
    "KEYCLOAK_URL=https://sso.internal",
    "password = \"\"",
    "password: ''",
    "token = null;",
    "key=None",
    "export TOKEN=$(gh auth token)",
    "TOKEN=`cat token.txt`",
    "password: ENC[AES256_GCM,data]",
    "PWD=/home/dev/app",
    "OLDPWD=/tmp",
    "passwd: files systemd",
    "root:x:0:0:root:/root:/bin/bash",
    "password   requisite   pam_pwquality.so retry=3",
    "auth required pam_unix.so",
    "PasswordAuthentication no",
    "password_encryption = scram-sha-256",
    "hostssl all all 0.0.0.0/0 scram-sha-256",
    "token budget: 200000",
    "context window: 200k tokens",
    "stop_token=\"</s>\"",
    "eos_token: \"<|endoftext|>\"",
    "pad_token_id: 50256",
    "tokenizer = AutoTokenizer.from_pretrained(name)",
    "key-value store",
    "public-key cryptography",
    "sshKeyPath: ~/.ssh/id_ed25519",
    "key_id: alias/app",
    "\"keyCode\": 13",
    "hotkey: ctrl+k",
    "keybinding: 'cmd+shift+p'",
    "\"secret\": \"opaque\"",
    "\"token\": \"eof\"",
    "token: EOF",
    "password: hashedPassword",
    "password: newPassword,",
    "pwd = os.getcwd()",
    "PASS tests/auth.test.ts",
    "PASS: password_reset",
    "assert user.check_password('x')",
];

/// How many kinds of them there are.
pub fn negatives() -> usize {
    NEGATIVES.len()
}

/// A line with the name of a secret, and none in it.
pub fn negative(which: usize, random: &mut Random) -> Sample {
    harmless(NEGATIVES[which % NEGATIVES.len()], random)
}

/// A line with this in it, which is no secret.
pub(super) fn harmless(shape: &'static str, random: &mut Random) -> Sample {
    let text = filled(shape, random).replace("{uuid}", &uuid(random));
    let quoted = serde_json::Value::from(text).to_string();
    let (head, tail) = around_line(random);
    Sample {
        family: shape,
        form: "negative",
        line: format!("{head}{}{tail}", &quoted[1..quoted.len() - 1]),
        secret: None,
    }
}
