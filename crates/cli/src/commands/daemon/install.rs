//! Writes the unit that starts the daemon with every login.

use std::path::{Path, PathBuf};

use unspool_store::own_file;

use crate::command_context::CommandContext;
use crate::failure::CommandFailure;

/// Writes the unit of this system and says how to enable it.
pub fn run(world: &CommandContext) -> Result<(), CommandFailure> {
    let program = std::env::current_exe()?;
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = world.home.clone().ok_or_else(|| world.no_home())?;
    // What moves our files or the client's must hold for the daemon too.
    let kept = ["UNSPOOL_HOME", "CLAUDE_CONFIG_DIR"].map(|name| {
        let value = variable(name)?.into_string().ok()?;
        Some((name, value))
    });
    let kept: Vec<(&str, String)> = kept.into_iter().flatten().collect();
    let unit = if cfg!(target_os = "macos") {
        launchd(&home, &program, &kept)
    } else if cfg!(target_os = "linux") {
        let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.filter(|dir| dir.is_absolute());
        systemd(
            &config.unwrap_or_else(|| home.join(".config")),
            &program,
            &kept,
        )
    } else {
        return Err(
            CommandFailure::failed("installing is supported for systemd and launchd only")
                .hint("configure your system to start `unspool daemon run` at login"),
        );
    }?;
    own_file::replace(&unit.path, unit.text.as_bytes())
        .map_err(|why| CommandFailure::failed(format!("`{}`: {why}", unit.path.display())))?;
    world
        .ui
        .printed(|out| Ok(writeln!(out, "{}", unit.path.display())?))?;
    world.ui.note(&format!("Enable it with: {}", unit.enable));
    Ok(())
}

struct ServiceUnit {
    path: PathBuf,
    text: String,
    enable: String,
}

fn systemd(
    config: &Path,
    program: &Path,
    kept: &[(&str, String)],
) -> Result<ServiceUnit, CommandFailure> {
    let program = quoted(&text(program)?);
    let environment: String = kept
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        .collect();
    Ok(ServiceUnit {
        path: config.join("systemd/user/unspool.service"),
        text: format!(
            "[Unit]
Description=unspool: follows all Claude Code sessions

[Service]
ExecStart={program} daemon run
ExecStop={program} daemon stop
{environment}Restart=on-failure
RestartSec=5

[Install]
WantedBy=default.target
"
        ),
        enable: "systemctl --user daemon-reload && systemctl --user enable --now unspool".into(),
    })
}

/// An argument of a unit: quoted, and nothing in it is meant for systemd.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('%', "%%").replace('$', "$$"))
}

fn launchd(
    home: &Path,
    program: &Path,
    kept: &[(&str, String)],
) -> Result<ServiceUnit, CommandFailure> {
    const LABEL: &str = "io.github.unspool";
    let program = escaped(&text(program)?);
    let path = home.join(format!("Library/LaunchAgents/{LABEL}.plist"));
    let environment: String = kept
        .iter()
        .map(|(name, value)| format!("    <key>{name}</key><string>{}</string>\n", escaped(value)))
        .collect();
    Ok(ServiceUnit {
        text: format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array>
    <string>{program}</string>
    <string>daemon</string>
    <string>run</string>
  </array>
  <key>EnvironmentVariables</key>
  <dict>
{environment}  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict>
</plist>
"#
        ),
        enable: format!("launchctl load -w {}", path.display()),
        path,
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn text(path: &Path) -> Result<String, CommandFailure> {
    let text = path.to_str().filter(|text| !text.contains('\n'));
    let text = text.map(str::to_owned);
    text.ok_or_else(|| {
        CommandFailure::failed(format!(
            "`{}` cannot be used in a service file",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_names_the_program_whatever_its_path_holds() {
        let program = Path::new("/opt/my \"tools\"/100%/un$pool");
        let kept = [("UNSPOOL_HOME", "/a b".to_owned())];
        let unit = systemd(Path::new("/c"), program, &kept).unwrap();
        assert_eq!(unit.path, Path::new("/c/systemd/user/unspool.service"));
        let start = r#"ExecStart="/opt/my \"tools\"/100%%/un$$pool" daemon run"#;
        assert!(unit.text.contains(start), "{}", unit.text);
        assert!(unit.text.contains("Environment=\"UNSPOOL_HOME=/a b\"\n"));
        let unit = launchd(Path::new("/h"), Path::new("/a&b/unspool"), &kept).unwrap();
        assert!(unit.text.contains("<string>/a&amp;b/unspool</string>"));
        assert!(systemd(Path::new("/c"), Path::new("/a\nb"), &[]).is_err());
    }
}
