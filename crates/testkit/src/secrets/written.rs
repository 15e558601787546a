//! More places where values stand that only their name tells: calls, defaults, tables, headers,
//! flags, dialogs, other languages, commands that take a password.
//!
//! Written from manuals and habits, as [`super::named`] is, and not from the rules of a finder.
//! `NAME` and `VALUE` are put into each place; `%T` is a tab, `%N` the end of a line.

use crate::random::Random;

use super::named::{self, Case};
use super::{Sample, around_line, draw};

/// What may stand in a value without ending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marks {
    /// Between quotes or tags.
    Any,
    /// In a shell or on a line.
    Some,
    /// In addresses, lists and forms.
    None,
}

/// Places of one kind: how names are written there, what fits, and the texts.
type Places = (Case, Marks, &'static [&'static str]);

const PLACES: &[Places] = &[
    // Calls.
    (
        Case::Pascal,
        Marks::Any,
        &[
            "config.setNAME(\"VALUE\");",
            "client.withNAME(\"VALUE\").build()",
            "var user = new User { NAME = \"VALUE\" };",
            "Dim NAME As String = \"VALUE\"",
        ],
    ),
    (
        Case::Camel,
        Marks::Any,
        &[
            "DataSourceBuilder.create().username(\"app\").NAME(\"VALUE\").build()",
            "let NAME: String = \"VALUE\"",
            "val NAME: String = \"VALUE\"",
            "const NAME: string = 'VALUE';",
            "<connection user=\"app\" NAME=\"VALUE\"/>",
            "<entry key=\"NAME\">VALUE</entry>",
            "flag.String(\"NAME\", \"VALUE\", \"how to log in\")",
            "props.put(\"NAME\", \"VALUE\");",
        ],
    ),
    (
        Case::Snake,
        Marks::Any,
        &[
            "builder.set_NAME(\"VALUE\")",
            "options = options.with_NAME(\"VALUE\".to_string());",
            "let NAME: &str = \"VALUE\";",
            "let NAME: &'static str = \"VALUE\";",
            "char NAME[] = \"VALUE\";",
            "std::string NAME = \"VALUE\";",
            "std::string NAME{\"VALUE\"};",
            "cfg.set(\"NAME\", \"VALUE\")",
            "'NAME', 'VALUE'",
            "<string name=\"NAME\">VALUE</string>",
            "config :app, NAME: \"VALUE\"",
            "{:user \"app\" :NAME \"VALUE\"}",
            "variable \"NAME\" {%N  default = \"VALUE\"%N}",
            "def connect(host, NAME='VALUE'):",
            "if NAME == \"VALUE\" {",
        ],
    ),
    // Defaults.
    (
        Case::Upper,
        Marks::Any,
        &[
            "os.environ.get(\"NAME\", \"VALUE\")",
            "os.getenv('NAME', 'VALUE')",
            "getenv('NAME') ?: 'VALUE'",
            "process.env.NAME || 'VALUE'",
            "process.env.NAME ?? \"VALUE\"",
            "process.env['NAME'] || 'VALUE'",
            "ENV.fetch('NAME', 'VALUE')",
            "ENV['NAME'] || 'VALUE'",
            "env('NAME', 'VALUE')",
            "config('NAME', default='VALUE')",
            "System.getenv().getOrDefault(\"NAME\", \"VALUE\")",
            "env::var(\"NAME\").unwrap_or(\"VALUE\".to_string())",
            "env::var(\"NAME\").unwrap_or_else(|_| \"VALUE\".into())",
            "Environment.GetEnvironmentVariable(\"NAME\") ?? \"VALUE\"",
            "viper.SetDefault(\"NAME\", \"VALUE\")",
            "System.put_env(\"NAME\", \"VALUE\")",
            "os.Setenv(\"NAME\", \"VALUE\")",
            "#define NAME \"VALUE\"",
            "monkeypatch.setenv(\"NAME\", \"VALUE\")",
        ],
    ),
    (
        Case::Upper,
        Marks::Some,
        &[
            "      NAME: ${NAME:-VALUE}",
            "${NAME:-VALUE}",
            ": \"${NAME:=VALUE}\"",
            "export NAME=${NAME:-VALUE}",
            "psql -W \"${NAME:-VALUE}\" -h db",
            "password: ${NAME:VALUE}",
        ],
    ),
    // Tables, tags, blocks.
    (
        Case::Upper,
        Marks::Some,
        &[
            "| NAME | VALUE |",
            "| `NAME` | `VALUE` |",
            "| PORT | 80 |%N| NAME | VALUE |",
            "NAME%TVALUE",
            "PORT%T80%NNAME%TVALUE%N",
            "NAME        VALUE",
            "PORT            80%NNAME     VALUE%N",
            "NAME: !!str VALUE",
            "NAME: !!str \"VALUE\"",
            "NAME: >-%N  VALUE%N",
            "NAME: |%N  VALUE%N",
            "<td>NAME</td><td>VALUE</td>",
            "SetEnv NAME VALUE",
            "Environment=\"NAME=VALUE\"",
            "Environment=NAME=VALUE",
            "travis env set NAME VALUE",
            "fly secrets set NAME=VALUE",
            "heroku config:set NAME=VALUE -a app",
            "wp config set NAME VALUE",
            "gh secret set NAME --body VALUE",
            "docker build --build-arg NAME=VALUE .",
            "RUN --mount=type=cache NAME=VALUE make",
            "set NAME=VALUE",
            "setx NAME VALUE",
            "NAME := VALUE",
            "-e NAME='VALUE'",
            "env NAME=VALUE cargo run",
            "declare -x NAME=\"VALUE\"",
            "NAME=VALUE%Nexport NAME",
        ],
    ),
    // Headers.
    (
        Case::OwnKey,
        Marks::None,
        &[
            "X-Api-Key: VALUE",
            "x-api-key: VALUE%Naccept: */*%N",
            "curl -H 'X-Api-Key: VALUE' https://api.internal/v1",
            "curl -H \"X-Auth-Token: VALUE\" https://api.internal/v1",
            "curl -H \"PRIVATE-TOKEN: VALUE\" https://git.internal/api/v4",
            "Authorization: VALUE",
            "Authorization: Bearer VALUE",
            "Authorization: Token VALUE",
            "curl -H 'Authorization: Bearer VALUE' https://api.internal",
            "headers = {\"Authorization\": \"Bearer VALUE\"}",
            "headers: { 'x-api-key': 'VALUE' }",
            "req.Header.Set(\"X-Api-Key\", \"VALUE\")",
            "headers.append('Authorization', 'VALUE')",
            "Ocp-Apim-Subscription-Key: VALUE",
            "proxy_set_header X-Api-Key VALUE;",
            "apikey: VALUE",
            "bearer VALUE",
            "api-key VALUE",
            "api key: VALUE",
            "API Token: VALUE",
        ],
    ),
    // Flags and addresses.
    (
        Case::OwnKey,
        Marks::None,
        &[
            "deploy --token VALUE",
            "deploy --token=VALUE --prod",
            "deploy --token \"VALUE\" --prod",
            "cli --api-key VALUE run",
            "cli --api-key=VALUE run",
            "cli --auth-token VALUE",
            "cli --access-token VALUE --json",
            "cli --client-secret VALUE --json",
            "https://h.internal/cb?access_token=VALUE&x=1",
            "https://h.internal/cb#access_token=VALUE&state=2",
            "wss://h.internal/ws?token=VALUE",
            "https://h.internal/v1?api_key=VALUE",
            "https://h.internal/v1?apikey=VALUE&q=x",
            "code=4711&client_secret=VALUE&grant_type=authorization_code",
            "//registry.npmjs.org/:_authToken=VALUE",
            "npm config set //registry.internal/:_authToken VALUE",
            "aws configure set aws_secret_access_key VALUE",
            "git config --global github.token VALUE",
            "aws_session_token = VALUE",
            "?api_token=VALUE",
        ],
    ),
    (
        Case::Own,
        Marks::Some,
        &[
            "cli --password VALUE",
            "cli --db-password VALUE --force",
            "java -Djavax.net.ssl.keyStorePassword=VALUE -jar a.jar",
            "java -Dspring.datasource.password=VALUE -jar a.jar",
            "mysql --password=VALUE -u root",
            "wget --http-password=VALUE http://h.internal/a",
            "--set auth.password=VALUE",
            "nmcli dev wifi connect Home password VALUE",
            "nmcli con modify Home wifi-sec.psk VALUE",
            "username app password 0 VALUE",
            "username app privilege 15 secret 0 VALUE",
            "enable secret 0 VALUE",
            "enable password VALUE",
            "neighbor 10.0.0.1 password VALUE",
            "tacacs-server key 0 VALUE",
            "snmp-server community VALUE RO",
            "wpa_passphrase Home VALUE",
            "net user app VALUE /add",
            "net use \\\\srv\\share VALUE /user:app",
            "ALTER ROLE app PASSWORD 'VALUE';",
            "SET PASSWORD FOR 'app'@'%' = 'VALUE';",
            "redis-cli CONFIG SET requirepass VALUE",
            "AUTH VALUE",
        ],
    ),
    // Commands that take a password.
    (
        Case::Own,
        Marks::Some,
        &[
            "echo VALUE | docker login -u app --password-stdin reg.internal",
            "echo 'VALUE' | sudo -S apt-get update",
            "echo \"app:VALUE\" | chpasswd",
            "openssl enc -aes-256-cbc -k VALUE -in a -out b",
            "7z a -pVALUE a.7z src",
            "zip -P VALUE a.zip src",
            "sqlcmd -S db -U sa -P VALUE -Q 'select 1'",
            "rabbitmqctl add_user app VALUE",
            "rabbitmqctl change_password app VALUE",
            "useradd -m -p VALUE app",
            "vault kv put secret/app value=VALUE",
            "kubectl create secret generic app --from-literal=db=VALUE",
            "ldapsearch -x -D cn=app -w VALUE -b dc=x",
            "htpasswd -cb .htpasswd app VALUE",
            "smbclient //srv/x -U app%VALUE",
            "curl --user 'app:VALUE' https://h.internal",
            "lftp -u app,VALUE ftp://h.internal",
            "mongo --username app --password VALUE",
            "gpg --batch --passphrase VALUE -d a.gpg",
            "ipmitool -H bmc -U admin -P VALUE power status",
            "sshpass -pVALUE ssh app@h.internal",
            "auth=('app', 'VALUE')",
            "requests.get(url, auth=HTTPBasicAuth('app', 'VALUE'))",
            "new NetworkCredential(\"app\", \"VALUE\")",
            "smtp.login('app', 'VALUE')",
            "DriverManager.getConnection(url, \"app\", \"VALUE\")",
        ],
    ),
    (
        Case::Own,
        Marks::None,
        &[
            "jdbc:oracle:thin:scott/VALUE@//db.internal:1521/orcl",
            "sqlplus scott/VALUE@orcl",
            "grant_type=password&username=app&password=VALUE",
            "ftp://app:VALUE@h.internal/a",
            "login: app / VALUE",
            "user/pass: app/VALUE",
            "credentials: app:VALUE",
        ],
    ),
    // Dialogs and other languages.
    (
        Case::Own,
        Marks::Some,
        &[
            "Enter password: VALUE",
            "New password: VALUE%NRetype new password:%N",
            "Enter passphrase for key '/home/a/.ssh/id_rsa': VALUE",
            "Password for 'https://app@git.internal': VALUE",
            "Password [hidden]: VALUE",
            "app@h.internal's password: VALUE",
            "? Password: VALUE",
            "Passwort: VALUE",
            "Das Passwort ist VALUE",
            "Kennwort: VALUE",
            "mot de passe : VALUE",
            "Mot de passe: VALUE",
            "contraseña: VALUE",
            "la contraseña es VALUE",
            "senha: VALUE",
            "wachtwoord: VALUE",
            "hasło: VALUE",
            "heslo: VALUE",
            "lösenord: VALUE",
            "пароль: VALUE",
            "Пароль: VALUE",
            "密码：VALUE",
            "密码: VALUE",
            "密码是 VALUE",
            "パスワード：VALUE",
            "パスワード: VALUE",
            "비밀번호: VALUE",
            "şifre: VALUE",
            "password = VALUE%N",
            "my password is VALUE",
            "use password VALUE for the staging box",
            "pw: VALUE",
            "password%N--------%NVALUE%N",
            " username | password %N----------+----------%N app      | VALUE%N(1 row)%N",
            "user,password%Napp,VALUE%N",
            "password | VALUE",
        ],
    ),
];

/// How many places there are.
pub fn places() -> usize {
    PLACES.iter().map(|(.., texts)| texts.len()).sum()
}

/// A value as people choose and programs make them: of each of four kinds as often.
fn value(marks: Marks, which: usize, random: &mut Random) -> String {
    let count = random.range(14, 30) as usize;
    let number = random.range(10, 2000);
    match which % 4 {
        0 => format!("{}{}7", draw(random, "a", count), random.below(10)),
        1 => {
            let length = *random.pick(&[16, 24, 32, 40]);
            draw(random, "h", length - 2) + "7c"
        }
        2 => format!("{}{}", named::word(random), number),
        _ => {
            let all = match marks {
                Marks::Any => "!@#%^&*-_=+?/~.",
                Marks::Some => "!@#%^*-_=+?~.",
                Marks::None => "!*-_.",
            };
            let all: Vec<char> = all.chars().collect();
            let (one, two) = (*random.pick(&all), *random.pick(&all));
            let word = named::capital(named::word(random)).replace('o', "0");
            format!(
                "{word}{one}{}{two}{}Y",
                random.below(90),
                named::word(random)
            )
        }
    }
}

/// A sample of a place; every fourth round has each kind of value in it once.
pub fn sample(which: usize, round: usize, random: &mut Random) -> Sample {
    let all = PLACES.iter();
    let mut all = all.flat_map(|(case, marks, texts)| texts.iter().map(|it| (*case, *marks, *it)));
    let (case, marks, place) =
        all.nth(which % places())
            .unwrap_or((Case::Own, Marks::None, "VALUE"));
    let words = match random.chance(60) {
        true => *random.pick(&["password", "db password", "admin password", "smtp pass"]),
        false => *random.pick(&["api key", "client secret", "auth token", "access token"]),
    };
    let value = value(marks, round, random);
    let text = place.replace("%T", "\t").replace("%N", "\n");
    let text = text.replace("NAME", &named::name(words, case));
    let (before, after) = text.split_once("VALUE").unwrap_or_default();
    let escape = |text: &str| {
        let quoted = serde_json::Value::from(text).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    let (head, tail) = around_line(random);
    let (before, after) = (escape(before), escape(after));
    let value = escape(&value);
    let start = head.len() + before.len();
    Sample {
        family: place,
        form: ["random", "hex", "word", "marks"][round % 4],
        secret: Some(start..start + value.len()),
        line: format!("{head}{before}{value}{after}{tail}"),
    }
}

/// Code and text in the same places, and no secret in it.
const NEGATIVES: &[&str] = &[
    "| password | string | The password of the user |",
    "| `DB_PASSWORD` | required | no default |",
    "| Name | Type | Default |\n|---|---|---|\n| token | string | none |",
    "| key | value |\n|---|---|\n| color | #1f2e3d |",
    " password | character varying(64) |",
    "password\tstring\trequired",
    "DB_PASSWORD    string    the password of the database",
    "user.setPassword(encoder.encode(raw));",
    "form.setPassword(\"\");",
    "builder.password(password)",
    "expect(screen.getByLabelText(\"Password\")).toBeVisible()",
    "getPasswordHint(\"login2\")",
    "hashPassword(input)",
    "os.environ.get(\"API_KEY\", \"\")",
    "os.getenv('DB_PASSWORD', None)",
    "process.env.TOKEN || ''",
    "process.env.API_KEY ?? undefined",
    "getenv('DB_PASSWORD') ?: null",
    "ENV.fetch('SECRET_KEY_BASE')",
    "config('API_KEY', default='')",
    "${DB_PASSWORD:-}",
    "${DB_PASSWORD:?set it first}",
    "${TOKEN:-$FALLBACK_TOKEN}",
    "${PASSWORD:+--password=$PASSWORD}",
    "DB_PASS: !!str",
    "password: !!null",
    "X-Api-Key: $API_KEY",
    "X-Api-Key: <your key>",
    "curl -H \"X-Api-Key: ${KEY}\" https://h.internal",
    "Authorization: Bearer <token>",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: Basic realm=\"x\"",
    "authorization: { type: 'oauth2' }",
    "authorization code flow",
    "bearer of bad news",
    "bearer token authentication",
    "Bearer {{ token }}",
    "--token $TOKEN",
    "--token <token>",
    "--token-file /run/token",
    "--api-key YOUR_API_KEY",
    "--password-stdin",
    "cli --token TOKEN --verbose",
    "https://h.internal/cb?access_token=$TOKEN",
    "https://h.internal/cb?token={token}&x=1",
    "https://h.internal/v1?key=name",
    "enable secret",
    "no enable password",
    "service password-encryption",
    "username app privilege 15",
    "the secret to good bread is time",
    "password manager",
    "passwords of 12 characters",
    "password reset link",
    "use password authentication for the staging box",
    "password hashing with argon2id",
    "kubectl get secret app-tls -o yaml",
    "kubectl describe secret app-v2",
    "kubectl create secret tls app --cert=a.pem --key=b.pem",
    "gh secret list",
    "gh secret set NPM_TOKEN",
    "vault kv get secret/app",
    "aws configure set region eu-west-1",
    "npm config set registry https://registry.npmjs.org/",
    "git config --global user.name Jo",
    "openssl rsa -in key.pem -out key.out",
    "7z x a.7z -odir",
    "zip -r a.zip src",
    "echo done | tee log",
    "echo hello | docker run -i alpine cat",
    "net user",
    "net use Z: \\\\srv\\share",
    "auth=('user', 'password')",
    "auth=(user, password)",
    "client.login(user, password)",
    "login: required",
    "login: 2024-01-02 10:11",
    "credentials: include",
    "mot de passe oublié",
    "Mot de passe : obligatoire",
    "contraseña: mínimo ocho letras",
    "La contraseña es obligatoria",
    "密码：必填",
    "请输入密码",
    "пароль: обязательно",
    "パスワード：必須",
    "Passwort vergessen?",
    "Das Passwort ist falsch",
    "user,password,role",
    "name,token,count\na,b,c",
    "username, password\nare both required",
    "password\n\nThe password of the user.",
    "Password\n========\nHow passwords are stored.",
    "#define MAX_PASSWORD 64",
    "#define TOKEN_EOF 1",
    "#define aes_set_encrypt_key lib_1_2__aes_set_encrypt_key",
    "char password[64];",
    "char password[PASSWORD_MAX];",
    "variable \"db_password\" {\n  type = string\n}",
    "if password == \"\" {",
    "<property name=\"password\" type=\"string\"/>",
    "<td>Password</td><td>The password</td>",
    "man5/passwd.5 man5/shadow.5",
    "fn set_password(&mut self, password: &str) {",
    "token(\"identifier\")",
    "key(\"name\")",
    "t.token(Kind::Eof)",
    "map.get(\"key\", \"value\")",
    "'password', 'email', 'name'",
    "[\"token\", \"string\"]",
];

/// How many kinds of them there are.
pub fn negatives() -> usize {
    NEGATIVES.len()
}

/// A line with the name of a secret, and none in it.
pub fn negative(which: usize, random: &mut Random) -> Sample {
    named::harmless(NEGATIVES[which % NEGATIVES.len()], random)
}
