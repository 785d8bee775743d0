//! What people and programs get to see: data on stdout, everything else on stderr.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::styling::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::{Map, Value};
use tamis::{AnyFilter, AnyParams, Filter};
pub(crate) use tamis_report::show::{bytes as short_bytes, count, per_second, rate};

/// What a shell says of a process that wrote into a closed pipe.
const CLOSED_PIPE: u8 = 128 + 13;
/// Standard deviations of the rate between filters that hold what they were planned for.
const DEVIATIONS: f64 = 4.0;
const OUTPUT_BUFFER: usize = 256 << 10;

/// Says why it failed, unless the reader of the output has closed the pipe.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    let closed_pipe = error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    });
    if closed_pipe {
        return ExitCode::from(CLOSED_PIPE);
    }
    say(AnsiColor::Red, &format_args!("{error:#}"));
    ExitCode::from(2)
}

/// A remark that is not an error.
pub(crate) fn note(text: &dyn Display) {
    say(AnsiColor::Yellow, text);
}

/// An error that the verb goes on after.
pub(crate) fn complaint(error: &anyhow::Error) {
    say(AnsiColor::Red, &format_args!("{error:#}"));
}

fn say(colour: AnsiColor, text: &dyn Display) {
    let style = Style::new().bold().fg_color(Some(colour.into()));
    // If stderr is closed, there is nobody to tell.
    let _ = writeln!(anstream::stderr(), "{style}tamis:{style:#} {text}");
}

/// A rate that somebody wrote, as a percentage.
pub(crate) fn short_rate(rate: f64) -> String {
    let percent = format!("{:.4}", rate * 100.0);
    format!("{}%", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// Bits for each key, if there is one.
pub(crate) fn per_key(bits: Option<f64>) -> String {
    bits.map_or("-".to_owned(), |bits| format!("{bits:.3}"))
}

/// A note if a filter is fuller than it should be.
pub(crate) fn note_if_crowded(filter: &AnyFilter) {
    if let Some(text) = crowded(filter) {
        note(&text);
    }
}

/// What a filter that is fuller than it should be costs.
pub(crate) fn crowded(filter: &AnyFilter) -> Option<String> {
    let (keys, capacity) = (filter.keys(), filter.capacity());
    if capacity > 0 && keys > capacity {
        // Repeats count among the keys, but take no room in most kinds: the rate tells.
        let planned = filter.params().predict(capacity);
        let most = planned.rate * (1.0 + DEVIATIONS * planned.rate_spread);
        return (filter.rate() > most).then(|| {
            let rate = rate(filter.rate());
            format!(
                "the filter holds {keys} keys but was planned for {capacity}, so its rate is now \
                 {rate}; build a larger one with --keys {keys} (fewer, if some came twice)"
            )
        });
    }
    filter.is_crowded().then(|| {
        let (fill, overflow) = (filter.fill() * 100.0, filter.overflow().unwrap_or(0));
        format!(
            "the table is {fill:.1}% full and keeps {overflow} entries beside it: answers stay right, but take longer; \
             build a larger one with --keys {keys}"
        )
    })
}

/// Standard output for data, with a large buffer: flush it at the end.
pub(crate) fn output() -> BufWriter<Output> {
    BufWriter::with_capacity(OUTPUT_BUFFER, Output(stdout().lock()))
}

/// Standard output, named in its errors.
pub(crate) struct Output(StdoutLock<'static>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| named(&error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(|error| named(&error))
    }
}

/// The kind stays what it was, for a closed pipe is told by it.
fn named(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write stdout: {error}"))
}

/// Prints text and a line end.
pub(crate) fn print(text: &dyn Display) -> Result<()> {
    let mut out = output();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Prints facts for programs.
pub(crate) fn print_json(facts: &impl Serialize) -> Result<()> {
    print(&serde_json::to_string_pretty(facts)?)
}

/// Names and values.
pub(crate) fn params(params: &AnyParams) -> Map<String, Value> {
    let pairs = params.named().into_iter();
    pairs.map(|(name, value)| (name.to_owned(), value.into())).collect()
}

/// A table without rules, as wide as the terminal at most.
pub(crate) fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let (true, Some((width, _))) = (stdout().is_terminal(), terminal_size::terminal_size()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
    }
    table
}

/// As [`table`], for prose: where there is no terminal, as wide as most of them are.
pub(crate) fn narrow_table() -> Table {
    let mut table = table();
    if !stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(80);
    }
    table
}

/// Prints a table whose columns `numbers` are aligned to the right.
pub(crate) fn print_table(mut table: Table, numbers: std::ops::Range<usize>) -> Result<()> {
    for column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Cells are padded by a space; nothing stands left of the first.
    for column in table.column_iter_mut().take(1) {
        column.set_padding((0, 1));
    }
    print(&table.trim_fmt())
}

/// Bytes for people.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = None;
    for name in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = Some(name);
    }
    match unit {
        None => format!("{bytes} bytes"),
        Some(unit) => format!("{bytes} bytes ({value:.1} {unit})"),
    }
}
