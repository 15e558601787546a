//! Ranked search finds what is there, however the index came about, and holds no secret.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::{ProptestConfig, any, prop, prop_assert, proptest};
use proptest::strategy::Strategy;
use tempfile::TempDir;
use unspool_index::text_index::{
    IndexRunEnd, IndexStage, IndexStatus, NAME, RankedHit, RankedQuery, RankedSearch, TextIndex,
};
use unspool_model::text::TextKind;
use unspool_model::time::Time;
use unspool_store::{FoundSessionFiles, find};
use unspool_testkit::script;

/// Transcripts and an index of them.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            dir: TempDir::new().unwrap(),
        }
    }

    /// With one session.
    fn with(script: &str) -> Bench {
        let bench = Bench::new();
        bench.session("s1", "/work/shop", script);
        bench
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join(".claude")
    }

    fn index(&self) -> PathBuf {
        self.dir.path().join("index")
    }

    fn path(&self, id: &str) -> PathBuf {
        self.config().join(format!("projects/-p/{id}.jsonl"))
    }

    fn session(&self, id: &str, cwd: &str, script: &str) {
        let script = format!("(cwd={cwd}, session={id})\n{script}");
        self.write(id, &lines(id, &script));
    }

    fn write(&self, id: &str, bytes: &[u8]) {
        let path = self.path(id);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn append(&self, id: &str, script: &str) {
        let mut file = OpenOptions::new().append(true).open(self.path(id)).unwrap();
        let script = format!("(cwd=/work/shop, session={id})\n{script}");
        file.write_all(&lines("more", &script)).unwrap();
    }

    fn found(&self) -> FoundSessionFiles {
        find(&[self.config()])
    }

    fn open(&self) -> TextIndex {
        TextIndex::open(&self.index()).unwrap().0
    }

    /// The index, up to date in both stages.
    fn built(&self) -> TextIndex {
        let mut text = self.open();
        let found = self.found();
        let ended = text.refresh_dialogue(&found, &mut |_| true).unwrap();
        assert_eq!(ended, IndexRunEnd::UpToDate);
        let ended = text.build_rest(&found, &mut |_| true).unwrap();
        assert_eq!(ended, IndexRunEnd::UpToDate);
        text
    }

    /// What a query finds, as `session line place`.
    fn ask(&self, query: &str) -> Vec<String> {
        places(&hits(&self.built(), query))
    }

    fn status(&self, text: &TextIndex) -> IndexStatus {
        text.status(&self.found()).unwrap()
    }
}

/// The lines of a script, with ids that no other script has.
fn lines(name: &str, script: &str) -> Vec<u8> {
    let text = String::from_utf8(script::jsonl(script)).unwrap();
    text.replace("00000000-0000-4000", name).into_bytes()
}

fn hits(text: &TextIndex, query: &str) -> Vec<RankedHit> {
    let query = RankedQuery::parse(query).unwrap();
    asked(text, &query, None)
}

fn asked(text: &TextIndex, query: &RankedQuery, since: Option<Time>) -> Vec<RankedHit> {
    let ask = RankedSearch {
        query,
        since,
        until: None,
        places: &[],
        now: Time::parse("2026-01-06T00:00:00.000Z").unwrap(),
        limit: 100,
        per_session: 100,
        width: 100,
    };
    text.query(&ask).unwrap()
}

fn places(hits: &[RankedHit]) -> Vec<String> {
    let place = |hit: &RankedHit| format!("{} {} {}", hit.session, hit.line, hit.place.name());
    let mut all: Vec<String> = hits.iter().map(place).collect();
    all.sort();
    all
}

const TALK: &str = "
    you:    fix the login page
    think:  the session cookie might expire
    claude: looking at it [Read src/login.rs]
    result: fn login() -> Cookie
    claude: the cookie expires too early
    title:  Login trouble
";

#[test]
fn everything_that_was_said_and_done_is_found_where_it_stands() {
    let bench = Bench::with(TALK);
    assert_eq!(bench.ask("fix"), ["s1 1 prompt"]);
    assert_eq!(bench.ask("might"), ["s1 2 thinking"]);
    assert_eq!(bench.ask("looking"), ["s1 3 reply"]);
    assert_eq!(bench.ask("trouble"), ["s1 7 title"]);
    assert_eq!(bench.ask("early"), ["s1 6 reply"]);
    assert_eq!(bench.ask("src login rs").len(), 1);
    assert!(bench.ask("fn")[0].ends_with("result"));
    assert!(bench.ask("absent").is_empty());
}

#[test]
fn dialogue_is_found_before_the_rest_is_indexed_and_the_status_says_so() {
    let bench = Bench::with(TALK);
    let mut text = bench.open();
    text.refresh_dialogue(&bench.found(), &mut |_| true)
        .unwrap();
    assert_eq!(places(&hits(&text, "cookie")), ["s1 6 reply"]);
    let status = bench.status(&text);
    assert_eq!(status.behind[IndexStage::Dialogue as usize], 0);
    assert_eq!(status.behind[IndexStage::Rest as usize], status.bytes);
    text.build_rest(&bench.found(), &mut |_| true).unwrap();
    assert_eq!(hits(&text, "cookie").len(), 3);
    assert_eq!(bench.status(&text).behind, [0, 0]);
}

#[test]
fn cjk_is_found_as_any_part_of_it() {
    let bench = Bench::with(
        "
        you:    连接数据库失败，请修复服务器
        claude: 数据已经修复 via データベース and 데이터베이스
        ",
    );
    for (query, count) in [
        ("数", 2),
        ("数据", 2),
        ("数据库", 1),
        ("据库失", 1),
        ("数库", 0),
        ("库数", 0),
        ("服务器 连接", 1),
        ("数据 -服务器", 1),
        ("ータ", 1),
        ("이터", 1),
        ("\"via データ\"", 1),
    ] {
        assert_eq!(bench.ask(query).len(), count, "{query}");
    }
}

#[test]
fn words_phrases_and_exclusions_mean_what_they_say() {
    let bench = Bench::with(TALK);
    assert_eq!(bench.ask("cookie expires"), ["s1 6 reply"]);
    assert_eq!(bench.ask("\"cookie might\"").len(), 1);
    assert!(bench.ask("\"might cookie\"").is_empty());
    assert_eq!(bench.ask("login -page").len(), bench.ask("login").len() - 1);
    assert_eq!(bench.ask("FIX Thé").len(), 1);
    assert!(bench.ask("logi").is_empty(), "words match as a whole");
}

#[test]
fn filters_narrow_what_is_found() {
    let bench = Bench::with(TALK);
    bench.session(
        "s2",
        "/work/blog",
        "
        (gitBranch=draft, model=claude-opus-9)
        (at=2026-01-03T10:00:00.000Z) you: the login again
        claude: sure [Bash cargo test login]
        result: Bash ok login
        ",
    );
    let sessions = |query: &str| {
        let mut all: Vec<String> = bench.ask(query);
        all.iter_mut().for_each(|place| place.truncate(2));
        all.dedup();
        all
    };
    assert_eq!(sessions("login"), ["s1", "s2"]);
    assert_eq!(sessions("login project:shop"), ["s1"]);
    assert_eq!(sessions("login project:/work/blog"), ["s2"]);
    assert_eq!(sessions("login branch:draft"), ["s2"]);
    assert_eq!(sessions("login model:opus-9"), ["s2"]);
    assert_eq!(sessions("login file:login.rs"), ["s1"]);
    assert!(sessions("login file:nowhere.rs").is_empty());
    assert!(sessions("login project:nothing").is_empty());
    assert!(sessions("login tool:Grep").is_empty());
    let bash = bench.ask("login tool:bash");
    assert_eq!(bash.len(), 2, "the call and its result: {bash:?}");
    let since = Time::parse("2026-01-04T00:00:00.000Z");
    let query = RankedQuery::parse("login").unwrap();
    let late = asked(&bench.built(), &query, since);
    assert!(late.iter().all(|hit| hit.session == "s1") && !late.is_empty());
}

#[test]
fn filters_alone_list_the_newest_first() {
    let bench = Bench::with(TALK);
    bench.session(
        "s2",
        "/work/shop",
        "(at=2026-01-02T00:00:00.000Z) you: older",
    );
    let text = bench.built();
    let all = hits(&text, "project:shop");
    let lines: Vec<&str> = all.iter().map(|hit| hit.session.as_str()).collect();
    assert_eq!(lines, ["s1", "s2"]);
    assert!(all.iter().all(|hit| hit.place == TextKind::Prompt));
    let touched = hits(&text, "file:login.rs");
    assert_eq!(touched.len(), 1);
    assert!(touched[0].snippet.text.contains("src/login.rs"));
}

#[test]
fn titles_and_prompts_come_before_what_tools_printed() {
    let bench = Bench::new();
    bench.session(
        "a",
        "/p",
        "you: x\nclaude: run [Bash ls]\nresult: Bash walrus walrus",
    );
    bench.session("b", "/p", "you: the walrus\nclaude: ok");
    bench.session("c", "/p", "you: y\nclaude: ok\ntitle: walrus");
    bench.session("d", "/p", "you: z\nclaude: no walrus");
    let order: Vec<String> = hits(&bench.built(), "walrus")
        .into_iter()
        .map(|hit| hit.session)
        .collect();
    assert_eq!(order, ["c", "b", "d", "a"]);
}

#[test]
fn one_session_does_not_fill_the_page_and_copies_are_shown_once() {
    let bench = Bench::new();
    let many = "you: walrus\n".repeat(10);
    bench.session("a", "/p", &many);
    // A resumed session begins with the same lines, under the same ids.
    let copy = fs::read(bench.path("a")).unwrap();
    bench.write("b", &copy);
    bench.session("c", "/p", "(parent=null) claude: one\nyou: another walrus");
    let query = RankedQuery::parse("walrus").unwrap();
    let ask = RankedSearch {
        query: &query,
        since: None,
        until: None,
        places: &[],
        now: Time(0),
        limit: 20,
        per_session: 3,
        width: 100,
    };
    let text = bench.built();
    let found = text.query(&ask).unwrap();
    let count = |id: &str| found.iter().filter(|hit| hit.session == id).count();
    assert_eq!(count("a").max(count("b")), 3);
    assert_eq!(count("c"), 1);
    let mut ids: Vec<_> = found.iter().map(|hit| hit.uuid.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), found.len());
    let few = text.query(&RankedSearch { limit: 2, ..ask }).unwrap();
    assert_eq!(few.len(), 2);
}

#[test]
fn stopping_after_any_transaction_and_going_on_gives_the_same_index() {
    let bench = Bench::with(TALK);
    bench.session(
        "s2",
        "/q",
        "you: 数据库\nclaude: run [Bash ls]\nresult: Bash walrus\nclaude: walrus",
    );
    bench.session("s3", "/r", "you: walrus\nthink: walrus walrus\nclaude: no");
    let queries = [
        "walrus",
        "login",
        "cookie",
        "数据",
        "tool:Bash walrus",
        "-page login",
        "project:q",
    ];
    let all = |text: &TextIndex| -> Vec<Vec<String>> {
        queries
            .iter()
            .map(|query| places(&hits(text, query)))
            .collect()
    };
    let whole = all(&bench.built());
    assert!(whole.iter().all(|found| !found.is_empty()));
    let whole_status = bench.status(&bench.open());
    fs::remove_dir_all(bench.index()).unwrap();
    // One line is one transaction; each process does one, and is gone.
    let mut runs = 0;
    for stage in IndexStage::BOTH {
        loop {
            let mut text = bench.open();
            text.batch_of(1);
            let mut turns = 0;
            let mut once = |_| {
                turns += 1;
                turns < 2
            };
            let ended = match stage {
                IndexStage::Dialogue => text.refresh_dialogue(&bench.found(), &mut once),
                IndexStage::Rest => text.build_rest(&bench.found(), &mut once),
            };
            runs += 1;
            assert!(runs < 200);
            if ended.unwrap() == IndexRunEnd::UpToDate
                && turns <= 2
                && bench.status(&text).behind[stage as usize] == 0
            {
                break;
            }
        }
    }
    assert!(runs > 15, "{runs}");
    let text = bench.open();
    assert_eq!(all(&text), whole);
    let status = bench.status(&text);
    assert_eq!((status.text, status.behind), (whole_status.text, [0, 0]));
}

#[test]
fn what_is_appended_is_found_and_nothing_is_found_twice() {
    let bench = Bench::with(TALK);
    assert_eq!(bench.ask("cookie").len(), 3);
    let before = bench.status(&bench.open());
    bench.append("s1", "you: and a cookie more\nthink: cookie");
    let mut text = bench.open();
    let mut read = 0;
    text.refresh_dialogue(&bench.found(), &mut |at| {
        read = at.all;
        true
    })
    .unwrap();
    assert_eq!(read, bench.status(&text).bytes - before.bytes);
    assert_eq!(bench.ask("cookie").len(), 5);
    assert_eq!(bench.ask("\"cookie more\""), ["s1 8 prompt"]);
}

#[test]
fn a_result_that_comes_later_still_knows_its_tool() {
    let bench = Bench::with("you: go\nclaude: run [Bash ls]");
    assert_eq!(bench.ask("ls tool:Bash").len(), 1);
    let before = fs::read(bench.path("s1")).unwrap();
    let script = "you: go\nclaude: run [Bash ls]\nresult: Bash walrus";
    let whole = lines("s1", &format!("(cwd=/work/shop, session=s1)\n{script}"));
    assert!(whole.starts_with(&before));
    let mut file = OpenOptions::new()
        .append(true)
        .open(bench.path("s1"))
        .unwrap();
    file.write_all(&whole[before.len()..]).unwrap();
    assert_eq!(bench.ask("walrus tool:Bash").len(), 1);
}

#[test]
fn a_line_without_its_newline_waits() {
    let bench = Bench::with("you: one");
    let mut bytes = fs::read(bench.path("s1")).unwrap();
    let whole = script::jsonl("you: walrus");
    let line: &[u8] = whole.as_ref();
    bytes.extend_from_slice(&line[..line.len() - 1]);
    bench.write("s1", &bytes);
    assert!(bench.ask("walrus").is_empty());
    bytes.push(b'\n');
    bench.write("s1", &bytes);
    assert_eq!(bench.ask("walrus"), ["s1 2 prompt"]);
}

#[test]
fn a_transcript_that_was_cut_replaced_or_deleted_is_forgotten() {
    let bench = Bench::with(TALK);
    assert_eq!(bench.ask("cookie").len(), 3);
    let bytes = fs::read(bench.path("s1")).unwrap();
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let file = File::options().write(true).open(bench.path("s1")).unwrap();
    file.set_len(first as u64).unwrap();
    drop(file);
    assert!(bench.ask("cookie").is_empty());
    assert_eq!(bench.ask("fix"), ["s1 1 prompt"]);
    // Another file in its place, larger than it was.
    fs::remove_file(bench.path("s1")).unwrap();
    bench.session("s1", "/q", &"you: a walrus instead of it\n".repeat(30));
    assert!(bench.ask("fix").is_empty());
    assert_eq!(bench.ask("walrus").len(), 30);
    assert_eq!(bench.ask("walrus project:/q").len(), 30);
    fs::remove_file(bench.path("s1")).unwrap();
    bench.session("s2", "/q", "you: hi");
    assert!(bench.ask("walrus").is_empty());
    assert_eq!(bench.ask("hi").len(), 1);
}

#[test]
fn an_index_that_was_deleted_or_damaged_is_made_again() {
    let bench = Bench::with(TALK);
    let before = bench.ask("cookie");
    fs::remove_dir_all(bench.index()).unwrap();
    assert_eq!(bench.ask("cookie"), before);
    fs::remove_dir_all(bench.index()).unwrap();
    fs::create_dir(bench.index()).unwrap();
    fs::write(bench.index().join(NAME), b"not a database at all").unwrap();
    let (_, notice) = TextIndex::open(&bench.index()).unwrap();
    assert!(notice.is_some());
    assert_eq!(bench.ask("cookie"), before);
    let (_, notice) = bench.open().renew(&bench.index()).unwrap();
    assert!(notice.unwrap().to_string().contains("is damaged"));
    assert_eq!(bench.ask("cookie"), before);
}

#[test]
fn two_who_build_at_once_count_nothing_twice() {
    let bench = Bench::new();
    for at in 0..20 {
        bench.session(
            &format!("s{at}"),
            "/p",
            "you: walrus\nthink: walrus\nclaude: no",
        );
    }
    let work = || {
        let mut text = bench.open();
        text.be_patient(std::time::Duration::from_secs(20)).unwrap();
        text.batch_of(1);
        let found = bench.found();
        text.refresh_dialogue(&found, &mut |_| true).unwrap();
        text.build_rest(&found, &mut |_| true).unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let status = bench.status(&bench.open());
    assert_eq!(status.behind, [0, 0]);
    assert_eq!(
        status.text,
        [
            20 * ("walrus".len() + "no".len()) as u64,
            20 * "walrus".len() as u64
        ]
    );
}

/// A secret in every place where text is indexed.
#[test]
fn no_word_of_a_secret_is_in_the_index() {
    // Put together here, so that it is in no file of ours.
    let inner = ["Zq8Vt3", "Lw9Xk2", "Bn7Rj5", "Hc4Pd6", "Mf1Gs0", "Yv3Tz8"].concat();
    let secret = format!("ghp_{inner}");
    let bench = Bench::with(&format!(
        "
        you:    my token is {secret} keep it
        think:  the token {secret} is there
        claude: run [Bash export GITHUB_TOKEN={secret}]
        result: Bash GITHUB_TOKEN={secret} walrus
        claude: token={secret}
        title:  about {secret}
        "
    ));
    let text = bench.built();
    assert_eq!(hits(&text, "walrus").len(), 1);
    for hit in hits(&text, "token") {
        assert!(!hit.snippet.text.contains(&inner), "{hit:?}");
        assert!(!hit.title.unwrap_or_default().contains(&inner));
    }
    assert!(!hits(&text, "token").is_empty());
    assert!(hits(&text, &secret).is_empty());
    drop(text);
    let parts = [inner.to_lowercase(), inner[..12].to_lowercase()];
    for file in fs::read_dir(bench.index()).unwrap() {
        let path = file.unwrap().path();
        assert!(!holds(&path, &parts), "{}", path.display());
    }
}

fn holds(path: &Path, parts: &[String]) -> bool {
    let bytes = fs::read(path).unwrap().to_ascii_lowercase();
    let found = |part: &String| bytes.windows(part.len()).any(|at| at == part.as_bytes());
    parts.iter().any(found)
}

#[cfg(unix)]
#[test]
fn the_index_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::with(TALK);
    bench.built();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&bench.index()), 0o700);
    assert_eq!(mode(&bench.index().join(NAME)), 0o600);
}

/// Characters that mean something to somebody, and any others.
fn queries() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "login", " ", " ", "\"", "-", "*", "^", ":", "(", ")", "{", "}", "AND", "OR", "NOT",
        "NEAR(", "+", "'", "\\", "\0", "数据", "ー", "é", "file:", "tool:", "project:", "branch:",
        "model:", "body:", "%", "_", ";", "--", ",", "\u{301}", "\u{2160}", "Ⓐ", "😀",
    ]);
    let pieces = prop::collection::vec(piece.prop_map(str::to_owned), 0..12);
    let any_text = any::<String>();
    prop::strategy::Union::new([
        pieces.prop_map(|pieces| pieces.concat()).boxed(),
        any_text.boxed(),
    ])
}

#[test]
fn no_query_is_an_error_of_sqlite() {
    let bench = Bench::with(TALK);
    let text = bench.built();
    proptest!(ProptestConfig::with_cases(1500), |(query in queries())| {
        if let Ok(query) = RankedQuery::parse(&query) {
            let ask = RankedSearch {
                query: &query,
                since: None,
                until: None,
                places: &[],
                now: Time(0),
                limit: 10,
                per_session: 3,
                width: 60,
            };
            let found = text.query(&ask);
            prop_assert!(found.is_ok(), "{query:?}: {found:?}");
        }
    });
}
