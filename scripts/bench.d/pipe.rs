//! The bare pipe: sends a cell to a Python that does nothing else (`loop.py`) and reads the answer.
//!
//!     pipe PYTHON LOOP COUNT CODE
//!
//! prints the first answer as soon as it is there, and then the nanoseconds that each of the others took
//! (the first has waited for the start of Python). This is what a round trip costs at least: two processes, two pipes, `eval`.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [python, program, count, code] = arguments.as_slice() else {
        return Err(io::Error::other("usage: pipe PYTHON LOOP COUNT CODE"));
    };
    let count: usize = count.parse().map_err(io::Error::other)?;
    let mut child = Command::new(python)
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut cells = child.stdin.take().expect("it is piped");
    let mut answers = BufReader::new(child.stdout.take().expect("it is piped"));
    let request = format!("{}\n{code}", code.len());
    let mut times = Vec::with_capacity(count);
    let (mut length, mut answer) = (String::new(), Vec::new());
    for number in 0..count {
        let started = Instant::now();
        cells.write_all(request.as_bytes())?;
        length.clear();
        answers.read_line(&mut length)?;
        answer.resize(length.trim().parse().map_err(io::Error::other)?, 0);
        answers.read_exact(&mut answer)?;
        if number == 0 {
            // Ends in a newline, which sends it off at once.
            io::stdout().write_all(&answer)?;
        } else {
            times.push(started.elapsed().as_nanos());
        }
    }
    drop(cells);
    child.wait()?;
    for time in times {
        println!("{time}");
    }
    Ok(())
}
