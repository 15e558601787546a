//! Days in reports follow the zone, also where its clocks change.

use std::collections::BTreeMap;

use unspool_testkit::home::Home;

use crate::counting::{line, rows};
use crate::home;

/// A machine on which a message was said at each of these times.
fn machine(times: &[&str]) -> Home {
    let home = home();
    let said = |(nth, at): (usize, &&str)| line(&format!("msg_{nth}"), "claude-opus-4-6", at, 1);
    let text: String = times.iter().enumerate().map(said).collect();
    let id = "20ed1000-0000-4000-8000-000000000001";
    home.transcript("/home/dev/x", id, text);
    home
}

/// How many messages each row has, by its key.
fn messages(home: &Home, per: &str, more: &[&str]) -> BTreeMap<String, u64> {
    let rows = rows(home, &[&["usage", per], more].concat());
    rows.iter()
        .map(|row| {
            let key = row[per].as_str().unwrap_or_else(|| panic!("{row}"));
            (key.to_owned(), row["messages"].as_u64().unwrap())
        })
        .collect()
}

fn check(zone: &str, times: &[&str], expected: &[(&str, u64)]) {
    let home = machine(times);
    let expected: BTreeMap<String, u64> = expected
        .iter()
        .map(|(day, count)| ((*day).to_owned(), *count))
        .collect();
    assert_eq!(
        messages(&home, "day", &["--timezone", zone]),
        expected,
        "{zone}"
    );
}

#[test]
fn a_day_begins_at_midnight_of_the_zone() {
    let times = ["2026-06-01T21:59:59.999Z", "2026-06-01T22:00:00.000Z"];
    check("UTC", &times, &[("2026-06-01", 2)]);
    check(
        "Europe/Berlin",
        &times,
        &[("2026-06-01", 1), ("2026-06-02", 1)],
    );
    let times = ["2026-06-01T03:59:59.000Z", "2026-06-01T04:00:00.000Z"];
    check(
        "America/New_York",
        &times,
        &[("2026-05-31", 1), ("2026-06-01", 1)],
    );
    // Offsets that are no whole hours, and the far side of the date line.
    let times = ["2026-06-01T18:14:59.000Z", "2026-06-01T18:15:00.000Z"];
    check(
        "Asia/Kathmandu",
        &times,
        &[("2026-06-01", 1), ("2026-06-02", 1)],
    );
    let times = ["2026-06-01T10:59:59.000Z", "2026-06-01T11:00:00.000Z"];
    check(
        "Pacific/Apia",
        &times,
        &[("2026-06-01", 1), ("2026-06-02", 1)],
    );
    let times = ["2026-06-01T10:59:59.000Z", "2026-06-01T11:00:00.000Z"];
    check(
        "Pacific/Pago_Pago",
        &times,
        &[("2026-05-31", 1), ("2026-06-01", 1)],
    );
}

#[test]
fn days_on_which_clocks_change_have_23_or_25_hours() {
    // Berlin: 29 March 2026 has 23 hours, 25 October has 25.
    let times = [
        "2026-03-28T22:59:59.000Z",
        "2026-03-28T23:00:00.000Z",
        "2026-03-29T21:59:59.000Z",
        "2026-03-29T22:00:00.000Z",
    ];
    let days = [("2026-03-28", 1), ("2026-03-29", 2), ("2026-03-30", 1)];
    check("Europe/Berlin", &times, &days);
    let times = [
        "2026-10-24T21:59:59.000Z",
        "2026-10-24T22:00:00.000Z",
        "2026-10-25T22:59:59.000Z",
        "2026-10-25T23:00:00.000Z",
    ];
    let days = [("2026-10-24", 1), ("2026-10-25", 2), ("2026-10-26", 1)];
    check("Europe/Berlin", &times, &days);
    // New York: 8 March and 1 November.
    let times = [
        "2026-03-08T04:59:59.000Z",
        "2026-03-08T05:00:00.000Z",
        "2026-03-09T03:59:59.000Z",
        "2026-03-09T04:00:00.000Z",
    ];
    let days = [("2026-03-07", 1), ("2026-03-08", 2), ("2026-03-09", 1)];
    check("America/New_York", &times, &days);
    let times = [
        "2026-11-01T03:59:59.000Z",
        "2026-11-01T04:00:00.000Z",
        "2026-11-02T04:59:59.000Z",
        "2026-11-02T05:00:00.000Z",
    ];
    let days = [("2026-10-31", 1), ("2026-11-01", 2), ("2026-11-02", 1)];
    check("America/New_York", &times, &days);
}

#[test]
fn a_day_that_a_zone_left_out_has_no_messages() {
    // Apia went from 29 to 31 December 2011.
    let times = ["2011-12-30T09:59:59.000Z", "2011-12-30T10:00:00.000Z"];
    check(
        "Pacific/Apia",
        &times,
        &[("2011-12-29", 1), ("2011-12-31", 1)],
    );
}

#[test]
fn since_and_until_are_days_of_the_zone() {
    let home = machine(&[
        "2026-03-28T22:59:59.000Z",
        "2026-03-28T23:00:00.000Z",
        "2026-03-29T21:59:59.000Z",
        "2026-03-29T22:00:00.000Z",
    ]);
    let zone = ["--timezone", "Europe/Berlin"];
    let from = [&zone[..], &["--since", "2026-03-29"]].concat();
    let days = messages(&home, "day", &from);
    assert_eq!(
        days.into_iter().collect::<Vec<_>>(),
        [("2026-03-29".to_owned(), 2), ("2026-03-30".to_owned(), 1)]
    );
    // The last day is part of it.
    let both = [&from[..], &["--until", "2026-03-29"]].concat();
    let days = messages(&home, "day", &both);
    assert_eq!(
        days.into_iter().collect::<Vec<_>>(),
        [("2026-03-29".to_owned(), 2)]
    );
}

#[test]
fn the_zone_of_the_machine_is_the_default() {
    let mut home = machine(&["2026-06-01T22:30:00.000Z"]);
    home.set("TZ", "Europe/Berlin");
    let days = messages(&home, "day", &[]);
    assert_eq!(
        days.into_iter().collect::<Vec<_>>(),
        [("2026-06-02".to_owned(), 1)]
    );
    let months = messages(&home, "month", &["--timezone", "UTC"]);
    assert_eq!(months.len(), 1);
    assert!(months.keys().all(|month| month.starts_with("2026-06")));
}

#[test]
fn a_date_that_is_none_is_refused_with_the_forms_that_are() {
    let home = machine(&["2026-06-01T22:30:00.000Z"]);
    let bad = [
        "soon",
        "2026-13-01",
        "2026-02-30",
        "01.03.2026",
        "",
        "-3d",
        "7 days",
    ];
    for date in bad {
        for option in ["--since", "--until"] {
            let option = format!("{option}={date}");
            let output = home.output(&["usage", "day", &option]);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{option}: {stderr}");
            assert!(output.stdout.is_empty(), "{option}");
            for form in ["7d", "24h", "2026-01-03", "today", "2026-01-03T15:00:00Z"] {
                assert!(stderr.contains(form), "{option}: {form}: {stderr}");
            }
            assert!(stderr.contains(&format!("`{date}`")), "{option}: {stderr}");
        }
        let option = format!("--since={date}");
        let output = home.output(&["search", "hi", &option]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{option}: {stderr}");
        assert!(stderr.contains("2026-01-03"), "{option}: {stderr}");
    }
}

#[test]
fn a_zone_that_is_none_is_refused_by_name() {
    let home = machine(&["2026-06-01T22:30:00.000Z"]);
    let output = home.output(&["usage", "day", "--timezone", "Mars/Olympus"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("Mars/Olympus"), "{stderr}");
}
