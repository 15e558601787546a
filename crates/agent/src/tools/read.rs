//! Read: a file as numbered lines, an image, a notebook, a PDF.

mod file_lines;
pub(super) mod notebook;

use std::io::{self, BufRead, BufReader, Cursor};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use self::file_lines::{FileLines, WantedLines};
use super::write::describe_read_error;
use super::{number, number_of, object, str_of, text, truth};
use crate::file::{self, FileReadError, TextEncoding};
use crate::tool::{BuiltinTool, ToolCallRequest, ToolContext, ToolOutcome};

/// What a read may give.
const LARGEST: u64 = 256 << 10;

/// What a read of a whole file gives unless more is asked for, in tokens.
const TOKENS: u64 = 25_000;

/// An image in base64 may take five megabytes.
const IMAGE: u64 = 5 * (1 << 20) * 3 / 4;

/// Pixels an image may be wide or high.
const PIXELS: usize = 8_000;

/// A request may take 32 MB, in base64 and with all the rest.
const PDF: u64 = 20 << 20;

/// Text in two bytes a unit is decoded whole.
const WIDE: u64 = 64 << 20;

/// The tool.
#[derive(Debug)]
pub struct ReadTool;

impl BuiltinTool for ReadTool {
    fn name(&self) -> &'static str {
        "Read"
    }

    fn description(&self) -> String {
        format!(
            "Reads a file of this machine. Give an absolute path; a file that is not there is an \
             error, nothing worse.\n\n\
             - Text comes as `number<TAB>line`, from line 1. Without `offset` and `limit` you get \
               the whole file, up to {} and about {TOKENS} tokens; with them, only those lines.\n\
             - Images (PNG, JPEG, GIF, WebP) are shown to you as images, notebooks (.ipynb) as \
               cells with their outputs, PDF files as documents.\n\
             - To list a folder use Glob, or `ls` with Bash.\n\
             - Read several files you need at once, in parallel.",
            size(LARGEST)
        )
    }

    fn schema(&self) -> Value {
        let mut offset = number("The first line to read, counted from 1");
        offset["minimum"] = json!(0);
        let mut limit = number("How many lines to read");
        limit["exclusiveMinimum"] = json!(0);
        object([
            ("file_path*", text("The absolute path of the file")),
            ("offset", offset),
            ("limit", limit),
            ("pages", text("Pages of a PDF, such as \"3\" or \"1-5\"")),
            (
                "allow_large",
                truth("Give all of the file even if it takes many tokens"),
            ),
        ])
    }

    fn only_reads(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, call: &ToolCallRequest, scene: &ToolContext<'_>) -> ToolOutcome {
        let path = file::absolute(
            str_of(&call.input, "file_path"),
            &scene.cwd,
            scene.host.home(),
        );
        read(&path, call, scene).unwrap_or_else(|unread| match unread {
            FileReadError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                ToolOutcome::failed(missing(scene))
            }
            other => ToolOutcome::failed(describe_read_error("read", &path, &other)),
        })
    }
}

/// What to say of a file that is not there.
pub(super) fn missing(scene: &ToolContext<'_>) -> String {
    format!(
        "File does not exist. Note: your current working directory is {}.",
        scene.cwd.display()
    )
}

fn read(
    path: &Path,
    call: &ToolCallRequest,
    scene: &ToolContext<'_>,
) -> Result<ToolOutcome, FileReadError> {
    let metadata = std::fs::metadata(path).map_err(FileReadError::Io)?;
    file::regular(&metadata)?;
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    match &*extension.to_ascii_lowercase() {
        "png" | "jpg" | "jpeg" | "gif" | "webp" => image(path),
        "ipynb" => notebook::read(path, scene),
        "pdf" => Ok(pdf(path, call)?),
        _ => lines(path, metadata.len(), call, scene),
    }
}

fn lines(
    path: &Path,
    len: u64,
    call: &ToolCallRequest,
    scene: &ToolContext<'_>,
) -> Result<ToolOutcome, FileReadError> {
    let offset = number_of(&call.input, "offset").map(|it| it.max(1));
    let limit = number_of(&call.input, "limit");
    let whole = offset.is_none_or(|it| it == 1) && limit.is_none();
    if whole && len > LARGEST {
        return Ok(too_large(len));
    }
    let wish = WantedLines {
        first: offset.unwrap_or(1),
        count: limit.unwrap_or(u64::MAX),
        most: LARGEST as usize,
    };
    let mut reader = BufReader::with_capacity(256 << 10, file::open(path)?.0);
    let start = reader.fill_buf().map_err(FileReadError::Io)?.to_vec();
    let page = match file::encoding(&start).0 {
        TextEncoding::Utf8 { .. } => {
            if is_binary(&start) {
                return Ok(binary(path));
            }
            FileLines::of(reader, &wish, scene.stop).map_err(FileReadError::Io)?
        }
        _ => {
            let bytes = file::read(path, WIDE)?;
            let (encoding, rest) = file::encoding(&bytes);
            let text = encoding.decode(rest);
            let page =
                FileLines::of(Cursor::new(text), &wish, scene.stop).map_err(FileReadError::Io)?;
            FileLines {
                hash: file::hash(&bytes),
                ..page
            }
        }
    };
    if page.is_over {
        return Ok(too_large(page.size));
    }
    scene.host.kept().saw_hash(path, page.hash);
    let large = call.input["allow_large"] == true;
    let tokens = match whole && !large {
        true => tokens(&page.text, scene),
        false => 0,
    };
    Ok(tell(path, page, &wish, tokens))
}

/// How many tokens a text takes: guessed where that is far from the limit, else counted.
fn tokens(text: &str, scene: &ToolContext<'_>) -> u64 {
    let guess = unspool_model::token_estimate::of_text(text);
    // Some texts take twice what is guessed.
    match guess > TOKENS / 2 {
        true => scene.host.count(text).unwrap_or(guess),
        false => guess,
    }
}

/// Tells a page that takes so many tokens; as much of it as fits, if that is too much.
fn tell(path: &Path, mut page: FileLines, wish: &WantedLines, tokens: u64) -> ToolOutcome {
    let mut after = String::new();
    let mut is_cut = false;
    if tokens > TOKENS {
        let bytes = page.text.len() as u64 * TOKENS / tokens;
        page.shorten(usize::try_from(bytes).unwrap_or(usize::MAX));
        is_cut = true;
        after = format!(
            "\n\n<system-reminder>PARTIAL view: the file has {} lines, of which lines 1 to {} are shown. Read on with offset {}, or give allow_large to get all of it.</system-reminder>",
            page.total,
            page.count,
            page.count + 1
        );
    }
    let mut file = json!({
        "filePath": path.display().to_string(), "content": page.text, "numLines": page.count,
        "startLine": wish.first, "totalLines": page.total,
    });
    if is_cut {
        file["truncatedByTokenCap"] = json!(true);
    }
    let told = match (page.total, page.count) {
        (0, _) => {
            "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>"
                .to_owned()
        }
        (total, 0) => format!(
            "<system-reminder>Warning: the file exists but is shorter than the provided offset ({}). The file has {total} lines.</system-reminder>",
            wish.first
        ),
        _ => page.numbered(wish.first),
    };
    ToolOutcome::done(told + &after, json!({"type": "text", "file": file}))
}

fn too_large(len: u64) -> ToolOutcome {
    ToolOutcome::failed(format!(
        "File content ({}) exceeds maximum allowed size ({}). Use offset and limit parameters to read specific portions of the file, or search for specific content instead of reading the whole file.",
        size(len),
        size(LARGEST)
    ))
}

fn is_binary(start: &[u8]) -> bool {
    start[..start.len().min(8 << 10)].contains(&0)
}

fn binary(path: &Path) -> ToolOutcome {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let kind = match extension.is_empty() {
        true => "binary file".to_owned(),
        false => format!("binary .{extension} file"),
    };
    ToolOutcome::failed(format!(
        "This tool cannot read binary files. The file appears to be a {kind}. Please use appropriate tools for binary file analysis."
    ))
}

fn image(path: &Path) -> Result<ToolOutcome, FileReadError> {
    let refuse = |why: String| {
        let shown = path.display();
        Ok(ToolOutcome::failed(format!(
            "cannot show {shown}: {why}. Make it smaller first, for example with ImageMagick's convert -resize."
        )))
    };
    let bytes = match file::read(path, IMAGE) {
        Err(FileReadError::Large(len)) => {
            let (has, most) = (size(len), size(IMAGE));
            return refuse(format!("the image takes {has}, and the limit is {most}"));
        }
        other => other?,
    };
    let Some(kind) = unspool_show::image_type::kind(&bytes) else {
        return Ok(binary(path));
    };
    let Ok(found) = imagesize::blob_size(&bytes) else {
        return Ok(binary(path));
    };
    let (width, height) = (found.width, found.height);
    if width > PIXELS || height > PIXELS {
        return refuse(format!(
            "the image is {width} x {height} pixels, and the limit is {PIXELS} in each direction"
        ));
    }
    let data = BASE64.encode(&bytes);
    let result = json!({"type": "image", "file": {
        "base64": data, "type": kind, "originalSize": bytes.len(),
        "dimensions": {"originalWidth": width, "originalHeight": height,
                       "displayWidth": width, "displayHeight": height},
    }});
    let source = json!({"type": "base64", "data": data, "media_type": kind});
    Ok(ToolOutcome::blocks(
        vec![json!({"type": "image", "source": source})],
        result,
    ))
}

/// A PDF goes to the model as it is: the model sees its pages.
fn pdf(path: &Path, call: &ToolCallRequest) -> Result<ToolOutcome, FileReadError> {
    let shown = path.display().to_string();
    if call.input.get("pages").is_some() {
        return Ok(ToolOutcome::failed(format!(
            "cannot take single pages out of {shown}. Read all of it without `pages`, or use Bash: pdftotext -f FIRST -l LAST '{shown}' -"
        )));
    }
    let bytes = match file::read(path, PDF) {
        Err(FileReadError::Large(len)) => {
            return Ok(ToolOutcome::failed(format!(
                "cannot show {shown}: the PDF takes {}, and the limit is {}. Use Bash: pdftotext '{shown}' -",
                size(len),
                size(PDF)
            )));
        }
        other => other?,
    };
    if !bytes.starts_with(b"%PDF-") {
        return Ok(ToolOutcome::failed(format!(
            "cannot show {shown}: it is not a PDF, whatever its name says"
        )));
    }
    let data = BASE64.encode(&bytes);
    let says = format!("PDF file read: {shown} ({})", size(bytes.len() as u64));
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": data});
    let blocks = vec![
        json!({"type": "text", "text": says}),
        json!({"type": "document", "source": source}),
    ];
    let file = json!({"filePath": shown, "base64": data, "originalSize": bytes.len()});
    Ok(ToolOutcome::blocks(
        blocks,
        json!({"type": "pdf", "file": file}),
    ))
}

/// A size as people say it: `58.6KB`.
pub(super) fn size(bytes: u64) -> String {
    let short = |value: f64, unit: &str| {
        let text = format!("{value:.1}");
        format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
    };
    let bytes = bytes as f64;
    match bytes {
        it if it < 1024.0 => short(it, " bytes"),
        it if it < 1_048_576.0 => short(it / 1024.0, "KB"),
        it if it < 1_073_741_824.0 => short(it / 1_048_576.0, "MB"),
        it => short(it / 1_073_741_824.0, "GB"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_said_as_the_original_says_them() {
        let said: Vec<String> = [12, 60_001, 262_144, 1 << 20, 5 << 30]
            .map(super::size)
            .into();
        assert_eq!(said, ["12 bytes", "58.6KB", "256KB", "1MB", "5GB"]);
    }
}
