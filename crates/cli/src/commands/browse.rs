//! Without a command: the browser on a terminal, the list elsewhere.

use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use unspool_show::wire::edit::EditResult;
use unspool_show::wire::hit::HitRow;
use unspool_store::{find, resolve};
use unspool_tui::{BrowserBackend, BrowserOptions, LoaderOptions};

use crate::command_context::{self, CommandContext};
use crate::commands::{clone, export, ls, search};
use crate::failure::CommandFailure;
use crate::live;

/// Opens the browser where a person looks, else lists.
pub fn run(mut world: CommandContext) -> Result<(), CommandFailure> {
    if world.ui.json || !is_screen() {
        return ls::plain(world);
    }
    let found = find::find(&world.dirs);
    let mut banner = world.demo.is_some().then_some("demo: bundled recordings");
    if found.sessions.is_empty() && world.demo.is_none() {
        if world.named {
            // Says which folder is wrong, if one is.
            world.walked()?;
            return Err(world.no_sessions());
        }
        world.use_demo()?;
        banner = Some("no Claude Code sessions on this machine: showing the bundled demo");
    }
    let here = world.here.as_deref();
    let first = here.and_then(|here| resolve::latest_in_directory(&found, here));
    let first = first.map(|file| (file.path.clone(), file.id.clone()));
    // What commands remark would stand in the middle of the screen.
    world.ui.quiet = true;
    let world = Arc::new(world);
    let follower = Arc::new(live::LiveFollower::new(Arc::clone(&world)));
    let style = world.ui.style();
    let library = LoaderOptions {
        reader: world.reader(),
        zone: style.zone,
        prices: Arc::new(world.prices().into_owned()),
    };
    let setting = BrowserOptions {
        join: Box::new({
            let follower = Arc::clone(&follower);
            move || follower.join()
        }),
        library,
        desk: Arc::new(BrowserActions { world }),
        first,
        banner: banner.map(str::to_owned),
        color: style.color,
        clock: command_context::now,
        client: "claude".to_owned(),
        own: own_name(),
        fails_at: fails_at(),
    };
    let done = unspool_tui::run(setting);
    follower.stop();
    Ok(done?)
}

/// What this program is started by.
fn own_name() -> String {
    let path = std::env::current_exe().ok();
    let path = path.and_then(|path| path.to_str().map(str::to_owned));
    path.unwrap_or_else(|| "unspool".to_owned())
}

/// Whether somebody sits at both ends, and the terminal can do more than print.
pub fn is_screen() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdin().is_terminal() && crate::ui::is_terminal() && !dumb
}

/// For tests of what a mistake of ours leaves of the terminal; not in what people run.
fn fails_at() -> Option<u64> {
    let asked = std::env::var("UNSPOOL_FAIL_AT_FRAME").ok();
    asked
        .filter(|_| cfg!(debug_assertions))
        .and_then(|frame| frame.parse().ok())
}

/// What commands do, for the browser.
struct BrowserActions {
    world: Arc<CommandContext>,
}

impl BrowserActions {
    fn told(&self, failure: &CommandFailure) -> String {
        let told = match failure {
            CommandFailure::Nothing(told) | CommandFailure::Failed(told) => told,
            CommandFailure::Found | CommandFailure::Code(_) | CommandFailure::Closed => {
                return "interrupted".to_owned();
            }
        };
        let text = match &told.hint {
            Some(hint) => format!("{}; {hint}", told.message),
            None => told.message.clone(),
        };
        self.world.masked(&text).into_owned()
    }
}

impl BrowserBackend for BrowserActions {
    fn search(
        &self,
        query: &str,
        each: &mut dyn FnMut(HitRow) -> ControlFlow<()>,
    ) -> Result<(), String> {
        search::stream(&self.world, query, each).map_err(|failure| self.told(&failure))
    }

    fn trim(&self, path: &Path, preset: Option<&str>, dry_run: bool) -> Result<EditResult, String> {
        let made = clone::by_preset(&self.world, path.as_os_str(), preset, dry_run);
        let mut made = made.map_err(|failure| self.told(&failure))?;
        self.world.mask_in(&mut made.title);
        Ok(made)
    }

    fn export(&self, path: &Path, format: &str) -> Result<PathBuf, String> {
        export::beside(&self.world, path.as_os_str(), format).map_err(|failure| self.told(&failure))
    }
}
