//! Options that write or run, and names of files that become options.

use super::{Family, Least, PermissionCase};

/// Programs that read, with an option that writes. `@` is the file.
const WRITES: &[&str] = &[
    "git log --output=@",
    "git log --output @",
    "git log --outp=@",
    "git log -p --output='@'",
    "git log \"--output=@\"",
    "git log --oneline -n 2 --output=@ -- README.md",
    "git --no-pager log --output=@",
    "git diff --output=@",
    "git diff --no-index --output=@ /dev/null a.txt",
    "git diff --no-index /dev/null a.txt --output=@",
    "git show --output=@ HEAD",
    "git show HEAD --outpu=@",
    "git diff-tree --output=@ HEAD",
    "git diff-index --output=@ HEAD",
    "git stash show -p --output=@",
    "git format-patch -1 -o @",
    "git format-patch -1 --output-directory=@",
    "git format-patch -1 -o@",
    "git archive -o @ HEAD",
    "git archive --output=@ HEAD",
    "git archive -o@ HEAD",
    "git archive --outp @ HEAD",
    "git bundle create @ HEAD",
    "git bundle create -q @ --all",
    "git bugreport -o @",
    "git checkout-index --prefix=@ -a",
    "git fast-export --export-marks=@ HEAD",
    "sort -o @ a.txt",
    "sort -o@ a.txt",
    "sort a.txt -o @",
    "sort -uo @ a.txt",
    "sort -uo@ a.txt",
    "sort -k2 -no @ a.txt",
    "sort --output=@ a.txt",
    "sort --output @ a.txt",
    "sort --outp=@ a.txt",
    "sort --o=@ a.txt",
    "sort '-o' '@' a.txt",
    "sort -- a.txt; sort -o @ a.txt",
    "LANG=C sort -o @ a.txt",
    "timeout 5 sort -o @ a.txt",
    "cat a.txt | sort -o @",
    "shuf -o @ a.txt",
    "shuf --output=@ a.txt",
    "shuf -n1 -o@ a.txt",
    "uniq a.txt @",
    "uniq -c a.txt @",
    "uniq -f 1 a.txt @",
    "uniq --skip-fields 1 a.txt @",
    "uniq - @",
    "xxd a.txt @",
    "xxd -r a.txt @",
    "xxd -c 8 a.txt @",
    "iconv -f utf-8 -o @ a.txt",
    "iconv --output=@ a.txt",
    "sdiff -o @ a.txt README.md",
    "tree -o @",
    "tree -L 2 -o @",
    "tree -a -o@ src",
    "less -o @ a.txt",
    "less -O@ a.txt",
    "less --log-file=@ a.txt",
    "curl -o @ https://example.com/x",
    "curl -o@ https://example.com/x",
    "curl -sSLo @ https://example.com/x",
    "curl --output @ https://example.com/x",
    "curl --output=@ https://example.com/x",
    "curl --outpu @ https://example.com/x",
    "curl -D @ https://example.com/x",
    "curl -c @ https://example.com/x",
    "curl --cookie-jar @ https://example.com/x",
    "curl --trace @ https://example.com/x",
    "curl --stderr @ https://example.com/x",
    "curl --etag-save @ https://example.com/x",
    "wget -O @ https://example.com/x",
    "wget -O@ https://example.com/x",
    "wget -qO @ https://example.com/x",
    "wget --output-document=@ https://example.com/x",
    "wget -o @ https://example.com/x",
    "wget -a @ https://example.com/x",
    "wget -P @ https://example.com/x",
    "dd if=a.txt of=@",
    "dd of=@ if=a.txt bs=1",
    "sed -i s/a/b/ @",
    "sed -i.bak s/a/b/ @",
    "sed --in-place s/a/b/ @",
    "sed -n -i -e s/a/b/ @",
    "sed -ni s/a/b/ @",
    "sed 'w @' a.txt",
    "sed -n 's/a/b/w @' a.txt",
    "sed -e p -e 'w @' a.txt",
    "sed -e p '-ew @' a.txt",
    "sed --expression='w @' a.txt",
    "awk '{print > \"@\"}' a.txt",
    "awk '{print >> \"@\"}' a.txt",
    "awk 'BEGIN { printf \"x\" > \"@\" }'",
    "xmllint --output @ a.txt",
    "cat a.txt > @",
    "cat a.txt >> @",
];

/// Files nobody writes unasked: orders for programs, outside, and plain ones, too.
const TARGETS: &[&str] = &[
    ".git/config",
    ".git/hooks/pre-commit",
    ".claude/settings.json",
    ".vscode/tasks.json",
    ".bashrc",
    "../outside/x",
    "/etc/x",
    "src/main.rs",
];

/// Programs whose work is writing: what programs take orders from is asked about all the same.
const WRITERS: &[&str] = &[
    "tee @",
    "tee -a @",
    "cat a.txt | tee a.txt @",
    "cp a.txt @",
    "cp -t @ a.txt",
    "cp -t@ a.txt",
    "cp --target-directory=@ a.txt",
    "mv a.txt @",
    "install a.txt @",
    "install -m 755 -t @ a.txt",
    "ln -s /tmp/x @",
    "ln -sf /tmp/x @",
    "touch @",
    "truncate -s 0 @",
    "split a.txt @",
    "tar cf @ a.txt",
    "tar -cf@ a.txt",
    "tar xf a.tar -C @",
    "unzip a.zip -d @",
    "zip @ a.txt",
    "gcc -o @ a.c",
    "gcc a.c -o@",
    "pandoc --output=@ a.md",
    "openssl enc -out @",
    "somebody --write-to @",
    "somebody --config=@",
    "rsync a.txt @",
    "chmod +x @",
];

const ORDERS: &[&str] = &[
    ".git/config",
    "./.git/config",
    ".git/hooks/post-checkout",
    "src/../.git/config",
    ".claude/settings.json",
    ".vscode/tasks.json",
];

/// Options that run something.
const RUNS: &[&str] = &[
    "sort --compress-program=./x a.txt",
    "sort --compress-prog ./x a.txt",
    "sort --comp=./x a.txt",
    "rg --pre ./x a",
    "rg --pre=./x a",
    "rg --hostname-bin=./x a",
    "rg -z a",
    "rg --search-zip a",
    "git grep -O./x a",
    "git grep -O a",
    "git grep --open-files-in-pager=./x a",
    "git grep --open=./x a",
    "git diff --ext-diff",
    "git diff --ext",
    "git log -p --ext-diff",
    "git log --textconv -p",
    "git show --textconv HEAD",
    "git archive --remote=. --exec=./x HEAD",
    "git archive --exec ./x --remote . HEAD",
    "git fetch --upload-pack=./x .",
    "git fetch --upload-pack ./x .",
    "git fetch 'ext::./x'",
    "git pull --upload-pack=./x .",
    "git ls-remote --upload-pack=./x .",
    "git ls-remote --exec=./x .",
    "git push --receive-pack=./x .",
    "git push --exec=./x .",
    "git clone -u ./x . y",
    "git clone --upload-pack=./x . y",
    "git clone -c core.fsmonitor=./x . y",
    "git clone --config core.fsmonitor=./x . y",
    "git clone --template=docs . y",
    "git init --template=docs y",
    "git rebase -x ./x HEAD~1",
    "git rebase --exec ./x HEAD~1",
    "git bisect run ./x",
    "git submodule foreach ./x",
    "git submodule foreach --recursive './x'",
    "git difftool -x ./x",
    "git difftool --extcmd=./x",
    "git mergetool",
    "git filter-branch --tree-filter ./x",
    "git for-each-repo --config=x status",
    "git send-email --smtp-server=./x",
    "git daemon",
    "git instaweb",
    "git hook run pre-commit",
    "git config core.fsmonitor ./x",
    "git config --local core.fsmonitor ./x",
    "git config --global core.pager ./x",
    "git config set core.fsmonitor ./x",
    "git config --add core.fsmonitor ./x",
    "git config alias.status '!./x'",
    "git config --edit",
    "git config -e",
    "git config --unset core.bare",
    "git config --file .git/config core.fsmonitor ./x",
    "find . -exec ./x {} +",
    "find . -execdir ./x {} ';'",
    "find . -ok ./x {} ';'",
    "find . -fprintf .git/config x",
    "find . -fprint0 x",
    "find . -fls x",
    "find . -delete",
    "find . '-delete'",
    "find . \"-ex\"ec ./x {} +",
    "fd -x ./x",
    "fd a -X ./x",
    "fd --exec ./x",
    "fd --exec-batch ./x",
    "man -P ./x ls",
    "man -P./x ls",
    "man --pager=./x ls",
    "man -H./x ls",
    "less +!./x a.txt",
    "less '+!./x' a.txt",
    "less -k x a.txt",
    "tar cf /dev/null a.txt --checkpoint=1 --checkpoint-action=exec=./x",
    "tar xf a.tar --to-command=./x",
    "tar xf a.tar --to-com ./x",
    "tar cf x.tar --use-compress-program=./x a.txt",
    "tar -I ./x -cf x.tar a.txt",
    "tar -I./x -cf x.tar a.txt",
    "tar cIf ./x x.tar a.txt",
    "tar --rsh-command=./x -cf h:x a.txt",
    "tar cf x.tar -F ./x a.txt",
    "zip x.zip a.txt -T -TT './x #'",
    "zip x.zip a.txt --unzip-command ./x",
    "rsync -e ./x a.txt h:",
    "rsync -ae./x a.txt h:",
    "rsync --rsh=./x a.txt h:",
    "rsync --rsync-path=./x a.txt h:",
    "scp -o ProxyCommand=./x a.txt h:",
    "scp -S ./x a.txt h:",
    "date -s 12:00",
    "date --set=12:00",
    "date --se 12:00",
    "curl -K x",
    "curl --config x",
    "curl -O https://example.com/x",
    "wget -e use_askpass=./x https://example.com",
    "wget --use-askpass=./x https://example.com",
    "file -C -m x",
    "sed '1e ./x' a.txt",
    "sed 's/a/b/e' a.txt",
    "sed -f x a.txt",
    "sed -n --file=x a.txt",
    "sed e a.txt",
    "sed '/a/{e ./x\n}' a.txt",
    "awk 'BEGIN{system(\"./x\")}'",
    "awk '{print | \"./x\"}' a.txt",
    "awk '\"./x\" | getline' a.txt",
    "awk -f x a.txt",
    "awk -i inplace '{print}' a.txt",
    "gawk -l x '{print}' a.txt",
    "sqlite3 x '.shell ./x'",
    "sqlite3 x .dump",
    "mapfile -C ./x -c 1 y",
    "compgen -C ./x",
    "complete -C ./x y",
    "bind -x '\"x\":./x'",
    "history -w .git/config",
    "fc -s x",
    "enable -f ./x y",
    "hash -p ./x git",
    "exec ./x",
];

/// Words that can become options of such programs. `@` is one of them.
const OPEN: &[&str] = &[
    "find @",
    "find . @",
    "find . -name x @",
    "sort @",
    "sort -u @",
    "sort a.txt @",
    "git log @",
    "git log -n 3 @",
    "git diff @",
    "git show @",
    "git archive @",
    "git grep a @",
    "rg a @",
    "tar cf x.tar @",
    "zip x.zip @",
    "sed s/a/b/ @",
    "rsync @ x",
    "tree @",
    "shuf @",
    "less @",
    "man @",
    "cp @ x",
    "tee @",
];

const WORDS: &[&str] = &[
    "*",
    "?exec",
    "[-]exec",
    "-e*",
    "-*",
    "-exe?",
    "--out*",
    "-o*",
    "$X",
    "$(cat a.txt)",
    "`cat a.txt`",
    "\"$X\"",
    "-$X",
    "-\"$X\"",
    "--output$X",
    "{-o,x}",
];

/// What stays allowed.
const FINE: &[&str] = &[
    "sort a.txt",
    "sort -u -k2,2 -t: a.txt",
    "sort -rn a.txt",
    "uniq -c a.txt",
    "uniq -f 1 a.txt",
    "git log --oneline -n 5",
    "git log --text -p",
    "git log -n 3 -- '*.rs'",
    "git diff --stat HEAD -- src",
    "git diff --no-index a.txt README.md",
    "git diff --output-indicator-new=x",
    "git show --stat HEAD",
    "git grep -n main",
    "git grep --text main",
    "git config --get user.name",
    "git config --list",
    "git config user.name",
    "git fetch origin",
    "rg -n main src",
    "rg --pretty main",
    "tree -L 2 src",
    "find . -name '*.rs'",
    "find src -type f",
    "sed -n 1,5p a.txt",
    "sed s/a/b/g a.txt",
    "sed -e s/a/b/ -e p a.txt",
    "awk '{print $1}' a.txt",
    "awk -F: '{print $1}' a.txt",
    "awk 'NR>=2' a.txt",
    "date +%F",
    "date -d yesterday",
    "curl https://example.com/x",
    "curl -sS -H 'A: b' https://example.com/x",
    "curl -X POST -d a=b https://example.com/x",
    "xxd a.txt",
    "man ls",
    "less a.txt",
    "tar tf a.tar",
    "tar -tvf a.tar",
    "grep -rn main src",
    "grep -o main src/main.rs",
    "git ls-files -o --exclude-standard",
    "git commit -o -m x README.md",
    "git push -o ci.skip",
    "ls -o src",
    "grep --include=*.rs -rn main src",
    "ls *",
    "cat *.txt",
    "wc -l *",
    "sort a.txt > /dev/null",
    "sort -o /dev/null a.txt",
];

pub(super) fn cases() -> Vec<PermissionCase> {
    let programs = [
        "git", "sort", "shuf", "uniq", "xxd", "iconv", "sdiff", "tree", "less", "curl", "wget",
        "dd", "sed", "awk", "gawk", "xmllint", "cat", "rg", "find", "fd", "man", "tar", "zip",
        "rsync", "scp", "date", "file", "sqlite3", "mapfile", "compgen", "complete", "bind",
        "history", "fc", "enable", "hash", "exec", "tee", "cp", "mv", "install", "ln", "touch",
        "truncate", "split", "unzip", "gcc", "pandoc", "openssl", "somebody", "chmod", "grep",
        "ls", "wc", "echo",
    ];
    let allow: Vec<String> = programs
        .iter()
        .map(|name| format!("Bash({name}:*)"))
        .collect();
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
    let mut writes = Family::new("output options", &allow, &[]);
    for way in WRITES {
        for target in TARGETS {
            writes.add("", Least::Ask, way.replace('@', target));
        }
    }
    for way in WRITERS {
        for target in ORDERS {
            writes.add("", Least::Ask, way.replace('@', target));
        }
        // A program that nobody knows may read what it is given.
        if !way.contains("--config") {
            writes.add("", Least::Ask, way.replace('@', "$X"));
        }
    }
    let mut all = writes.cases;
    let mut denied = Family::new("output options denied", &allow, &["Edit(./secrets/**)"]);
    for way in WRITES.iter().chain(WRITERS).filter(|way| !is_script(way)) {
        denied.add("", denied_least(way), way.replace('@', "secrets/key"));
    }
    all.extend(denied.cases);
    let mut runs = Family::new("options that run", &allow, &[]);
    for command in RUNS {
        runs.add("", Least::Ask, *command);
    }
    for way in OPEN {
        for word in WORDS {
            runs.add("names", Least::Ask, way.replace('@', word));
        }
    }
    all.extend(runs.cases);
    let mut fine = Family::new("options that read", &allow, &[]);
    for command in FINE {
        fine.add("", Least::Allow, *command);
    }
    all.extend(fine.cases);
    all
}

/// The file stands in a program of `sed` or `awk`, which is asked about and not read.
fn is_script(way: &str) -> bool {
    way.contains("'w @") || way.contains("w @'") || way.contains("awk")
}

/// What a program that nobody knows does with a file is asked about.
fn denied_least(way: &str) -> Least {
    let unknown = ["somebody", "tar", "zip ", "pandoc", "openssl"];
    match unknown.iter().any(|name| way.starts_with(name)) {
        true => Least::Ask,
        false => Least::Deny,
    }
}
