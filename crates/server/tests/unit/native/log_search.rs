use windlass_api::log::LogLevel;
use windlass_core::{JobId, JobKey, LogAppend, LogForm, Namespace, Payload, Timestamp};
use windlass_server::native::log_search::{Position, SEARCHED_MAX, Search};

fn piece(number: u64, text: &str) -> LogAppend {
    LogAppend {
        job: JobKey::new(&Namespace::default(), JobId::from_u128(1)),
        piece: number,
        attempt: 1,
        at: Timestamp(number as i64),
        form: LogForm::default(),
        data: Payload::from(text),
    }
}

/// However the calls are cut, the same lines are found.
#[test]
fn a_line_in_several_pieces_is_found_once_and_whole() {
    let pieces = [piece(1, "one\ntwo ne"), piece(2, "edle two\nneedle"), piece(3, " \u{1b}[31mthr\u{1b}[0mee\n\nlast")];
    let mut all = Search::new("NEEDLE", None, 10, Position::default()).with(&pieces);
    all.end();
    let told = all.told();
    let lines: Vec<_> = told.lines.iter().map(|line| (line.line, line.text.as_str())).collect();
    assert_eq!(lines, [(2, "two needle two"), (3, "needle \u{1b}[31mthr\u{1b}[0mee")]);
    assert_eq!((told.searched, told.next), (5, None));
    let (mut position, mut found) = (Position::default(), Vec::new());
    for _ in 0..10 {
        let mut part = Search::new("three", None, 1, position).with(&pieces[position.after as usize..]);
        if !part.is_done() {
            part.end();
        }
        let told = part.told();
        found.extend(told.lines.into_iter().map(|line| line.line));
        let Some(next) = told.next else { break };
        position = Position::read(&next).unwrap();
    }
    assert_eq!(found, [3]);
}

#[test]
fn lines_are_found_by_their_level_whatever_colours_they_have() {
    let text = "\u{1b}[31mERROR\u{1b}[0m one\nfine\n\u{1b}[1;38;5;9mError: two\u{1b}[m\n0 errors\n";
    let search = |text_wanted| Search::new(text_wanted, Some(LogLevel::Error), 10, Position::default());
    let numbers = |mut search: Search| {
        search.end();
        search.told().lines.iter().map(|line| line.line).collect::<Vec<_>>()
    };
    assert_eq!(numbers(search("").with(&[piece(1, text)])), [1, 3]);
    assert_eq!(numbers(search("TWO").with(&[piece(1, text)])), [3]);
}

#[test]
fn a_line_without_end_does_not_hold_up_the_search() {
    let long = piece(1, &"x".repeat(SEARCHED_MAX));
    let told = Search::new("needle", None, 10, Position::default()).with(&[long]).told();
    assert_eq!(told.next.as_deref(), Some("1.0.1"));
    assert_eq!(Position::read("1.0"), None);
    assert_eq!(Position::read("1.0.2.3"), None);
}
