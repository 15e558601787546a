//! Acts in which the model speaks, thinks, and stops for other reasons than that it is done.

use super::super::stage::Turn;
use super::{Draw, PNG};
use serde_json::json;
use unspool_testkit::model::{Answer, text, thinking};

pub fn words(draw: &mut Draw<'_>) -> Vec<Turn> {
    let blocks = [text(draw.say()), text("And another thing.")];
    let some = 1 + draw.random.below(2) as usize;
    draw.answers(vec![Answer::blocks(&blocks[..some])])
}

pub fn thoughts(draw: &mut Draw<'_>) -> Vec<Turn> {
    let blocks = [thinking("First this."), text(draw.say())];
    draw.answers(vec![Answer::blocks(&blocks)])
}

pub fn hidden(draw: &mut Draw<'_>) -> Vec<Turn> {
    let hidden = json!({"type": "redacted_thinking", "data": "aGlkZGVu"});
    let calls = draw.read("a.txt");
    draw.answers(vec![
        Answer::blocks(&[hidden.clone(), thinking("Then this."), calls]),
        Answer::blocks(&[hidden, text("I thought about it.")]),
    ])
}

pub fn shown(draw: &mut Draw<'_>) -> Vec<Turn> {
    let source = json!({"type": "base64", "media_type": "image/png", "data": PNG});
    let content =
        json!([{"type": "text", "text": "what is this?"}, {"type": "image", "source": source}]);
    let mut turn = draw.turn(vec![]);
    turn.stream = vec![json!({"type": "user", "message": {"role": "user", "content": content}})];
    vec![turn]
}

pub fn server(draw: &mut Draw<'_>) -> Vec<Turn> {
    let id = draw.id().replace("toolu", "srvtoolu");
    let asked = json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "weather"}});
    let found = json!({"type": "web_search_result", "url": "https://example.com/", "title": "Weather", "encrypted_content": "ZW5j", "page_age": null});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [found]});
    draw.answers(vec![Answer::blocks(&[
        text("I search."),
        asked,
        result,
        text("It rains."),
    ])])
}

pub fn pause(draw: &mut Draw<'_>) -> Vec<Turn> {
    draw.answers(vec![
        Answer::stopping(&[text("A first part.")], "pause_turn"),
        Answer::text("The rest of it."),
    ])
}

pub fn refusal(draw: &mut Draw<'_>) -> Vec<Turn> {
    let mut turns = draw.answers(vec![Answer::stopping(&[text("I would")], "refusal")]);
    turns[0].codes = &[0, 1];
    turns
}

pub fn short(draw: &mut Draw<'_>) -> Vec<Turn> {
    let mut turns = draw.answers(vec![
        Answer::stopping(&[text("This goes on and")], "max_tokens"),
        Answer::text("and ends."),
    ]);
    turns[0].codes = &[0, 1];
    turns
}

pub fn limit(draw: &mut Draw<'_>) -> Vec<Turn> {
    let (one, two) = (draw.read("a.txt"), draw.read("b.md"));
    let mut turn = draw.turn(vec![vec![one], vec![two]]);
    turn.args.extend(["--max-turns", "1"]);
    turn.codes = &[1];
    vec![turn]
}
