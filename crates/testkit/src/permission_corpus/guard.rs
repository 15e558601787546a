//! What would destroy a disk, a system or a home: asked about in every mode. Never to be run.

use super::{Family, Least, PermissionCase};

pub(super) const FAMILY: &str = "destruction";

const DESTROYS: &[&str] = &[
    "rm -rf /",
    "rm -rf /*",
    "rm -rf ~",
    "rm -rf /usr",
    "rm -rf /etc/ssl",
    "rm -r --no-preserve-root /",
    "mkfs /dev/sda1",
    "mkfs.ext4 /dev/sda1",
    "mkfs.ext4 -F /dev/nvme0n1",
    "/sbin/mkfs.xfs -f /dev/sdb",
    "mkfs.fat -n LABEL /dev/sda1",
    "mkfs.xfs -l size=64m /dev/sda1",
    "mkswap /dev/sda2",
    "wipefs -a /dev/sda",
    "blkdiscard /dev/sda",
    "sgdisk -Z /dev/sda",
    "sgdisk -p -Z /dev/sda",
    "parted /dev/sda mklabel gpt",
    "fdisk /dev/sda",
    "dd if=/dev/zero of=/dev/sda",
    "dd of=/dev/nvme0n1 if=x bs=1M",
    "dd if=x of=/dev/../dev/sda",
    "tee /dev/sda",
    "cp x /dev/sda",
    "shred /dev/sda",
    "truncate -s 0 /dev/sda",
    "chmod -R 777 /",
    "chmod -R 000 /*",
    "chmod 777 -R /",
    "chmod --recursive 777 /etc",
    "chmod -Rv 777 /usr",
    "chmod -R 777 ~",
    "chown -R nobody /",
    "chown -R nobody:nobody /home",
    "chown --recursive nobody /usr",
    "chgrp -R nobody /",
    "find / -delete",
    "find / -type f -delete",
    "find -L / -delete",
    "find /usr -name x -delete",
    "find ~ -delete",
    "find / -exec rm -rf {} +",
    "find . -exec rm -rf / ';'",
    "mv / x",
    "mv ~ x",
    "mv /usr /tmp/x",
    "rsync -a --delete empty/ /",
    "rsync -a --delete empty/ ~/",
];

/// `@` is the command; one quote of it is none.
const WRAPPERS: &[&str] = &[
    "@",
    "sudo @",
    "sudo -n -u root @",
    "doas @",
    "env @",
    "env A=1 @",
    "nice @",
    "nice -n 5 @",
    "timeout 5 @",
    "timeout -k 1 5 @",
    "nohup @",
    "setsid @",
    "ionice -c 3 @",
    "stdbuf -oL @",
    "command @",
    "exec @",
    "busybox @",
    "time @",
    "sudo nice timeout 5 env @",
    "A=1 @",
    "sh -c '@'",
    "bash -c \"@\"",
    "sudo sh -c '@'",
    "bash -lc 'true; @'",
    "eval '@'",
    "su -c '@'",
    "true && @",
    "false || @",
    "@ &",
    "(@)",
    "{ @; }",
    "echo $(@)",
    "if true; then @; fi",
    "f() { @; }; f",
    "cd src && @",
    "echo '@' | sh",
    "bash <<< '@'",
    "sh <<E\n@\nE",
];

const MORE: &[&str] = &[
    "xargs rm -rf /",
    "echo / | xargs rm -rf",
    "echo / | xargs -n1 rm -rf",
    "find . | xargs rm -rf",
    "find / -type f | xargs rm -f",
    "find ~ -print0 | xargs -0 rm",
    "dd if=x of=$DISK",
    "dd if=x of=\"$DISK\"",
    "ls / | xargs -I{} rm -rf /{}",
    "cat x > /dev/sda",
    "cat x >> /dev/nvme0n1",
    "> /dev/sda",
    "echo x >/dev/sd\"a\"",
    "echo x > /dev/sd$X",
    "echo x > /dev/$X",
    "{ cat x; } > /dev/sda",
    "cd / && rm -rf *",
    "cd / && chmod -R 777 .",
    "cd / && find . -delete",
    "cd / && find -delete",
    "cd /dev && echo x > sda",
    "chmod -R 777 $X",
    "chmod -R 777 \"$X\"/",
    "chown -R me $X/*",
    "sort -o /dev/sda x",
    "$R -rf /",
    "$(echo rm) -rf /",
    "bash -c \"rm -rf $X\"",
    "echo b > /proc/sysrq-trigger",
    ":(){ :|:& };:",
];

/// What the mode is for.
const FINE: &[&str] = &[
    "rm -rf build",
    "rm -rf build/*",
    "rm *.tmp",
    "rm -f /tmp/x/y",
    "chmod +x run.sh",
    "chmod -R u+w src",
    "chown -R me src",
    "find . -name '*.o' -delete",
    "find src -exec grep x {} +",
    "dd if=/dev/zero of=disk.img bs=1M count=1",
    "dd if=/dev/sda of=disk.img",
    "echo x > /dev/null",
    "echo x > /dev/stderr",
    "cat x > /dev/tty",
    "cat x > out",
    "fdisk -l",
    "fdisk -l /dev/sda",
    "parted /dev/sda print",
    "mkfs.ext4 --help",
    "cp /dev/null x",
    "mv a.txt b.txt",
    "ls | xargs rm -f",
    "sudo apt-get update",
    "sh -c 'echo x'",
    "bash run.sh",
    "git push --force",
    "cd docs/theme && git status",
    "curl -o /tmp/x https://example.com",
    "PATH=/x make",
];

pub(super) fn cases() -> Vec<PermissionCase> {
    let mut family = Family::new(FAMILY, &["Bash"], &[]);
    family.bypass = true;
    for command in DESTROYS {
        for wrapper in WRAPPERS {
            // Quotes within the same quotes would end them.
            if command.contains('\'') && wrapper.contains('\'') {
                continue;
            }
            family.add("", Least::Ask, wrapper.replace('@', command));
        }
    }
    for command in MORE {
        family.add("", Least::Ask, *command);
    }
    for command in FINE {
        family.add("", Least::Allow, *command);
    }
    family.cases
}
