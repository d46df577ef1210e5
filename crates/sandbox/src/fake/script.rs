//! The steps of a fake command; see [`fake`](super) for the language.

use std::{
    io::{self, Write},
    time::Duration,
};

use crate::{Exit, Spec};

const SIGNAL_KILL: i32 = 9;

/// What a command will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) duration: Duration,
    pub(super) exit: Exit,
    pub(super) is_stubborn: bool,
    pub(super) is_oom_killed: bool,
    pub(super) is_unpreparable: bool,
    pub(super) is_unstartable: bool,
    lines: Vec<Line>,
}

/// Something it writes when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Print(String),
    Complain(String),
    Input,
    Env(String),
    Workdir,
    User,
}

// === impl Script ===

impl Script {
    /// Fails with the words that are no step.
    pub(super) fn parse(argv: &[String]) -> Result<Self, Vec<String>> {
        let mut script = Self {
            duration: Duration::ZERO,
            exit: Exit::Code(0),
            is_stubborn: false,
            is_oom_killed: false,
            is_unpreparable: false,
            is_unstartable: false,
            lines: Vec::new(),
        };
        let mut words: Vec<&str> = argv.iter().map(String::as_str).collect();
        while !words.is_empty() {
            let taken = script.step(&words);
            let taken = taken
                .ok_or_else(|| words.iter().copied().map(str::to_owned).collect::<Vec<_>>())?;
            words.drain(..taken);
        }
        Ok(script)
    }

    /// Takes one step and tells how many words it had; `None` if it is none.
    fn step(&mut self, words: &[&str]) -> Option<usize> {
        match *words {
            ["exit", code, ..] => self.exit = Exit::Code(code.parse().ok()?),
            ["signal", number, ..] => self.exit = Exit::Signal(number.parse().ok()?),
            ["sleep", seconds, ..] => {
                self.duration += Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
            }
            ["print", text, ..] => self.lines.push(Line::Print(text.to_owned())),
            ["complain", text, ..] => self.lines.push(Line::Complain(text.to_owned())),
            ["show", "env", name, ..] => {
                self.lines.push(Line::Env(name.to_owned()));
                return Some(3);
            }
            ["show", "workdir", ..] => self.lines.push(Line::Workdir),
            ["show", "user", ..] => self.lines.push(Line::User),
            _ => return self.word(words.first()?),
        }
        Some(2)
    }

    fn word(&mut self, word: &str) -> Option<usize> {
        match word {
            "cat" => self.lines.push(Line::Input),
            "stubborn" => self.is_stubborn = true,
            "oom" => {
                self.is_oom_killed = true;
                self.exit = Exit::Signal(SIGNAL_KILL);
            }
            "unpreparable" => self.is_unpreparable = true,
            "unstartable" => self.is_unstartable = true,
            _ => return None,
        }
        Some(1)
    }

    /// Writes all its lines.
    pub(super) fn write(
        &self,
        spec: &Spec,
        input: &[u8],
        stdout: &mut impl Write,
        stderr: &mut impl Write,
    ) -> io::Result<()> {
        for line in &self.lines {
            match line {
                Line::Print(text) => writeln!(stdout, "{text}")?,
                Line::Complain(text) => writeln!(stderr, "{text}")?,
                Line::Input => stdout.write_all(input)?,
                Line::Env(name) => {
                    writeln!(stdout, "{}", spec.env.get(name).map_or("", String::as_str))?;
                }
                Line::Workdir => writeln!(stdout, "{}", spec.workdir.display())?,
                Line::User => writeln!(stdout, "{}:{}", spec.user.uid, spec.user.gid)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Script, Vec<String>> {
        let argv: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Script::parse(&argv)
    }

    #[test]
    fn steps_are_taken_in_order() {
        let script = parse("print a sleep 1.5 sleep 1 show env HOME stubborn exit 3").unwrap();
        assert_eq!(script.duration, Duration::from_millis(2500));
        assert_eq!(script.lines, [Line::Print("a".into()), Line::Env("HOME".into())]);
        assert_eq!((script.exit, script.is_stubborn), (Exit::Code(3), true));
    }

    #[test]
    fn what_is_no_step_is_refused_with_what_follows() {
        assert_eq!(parse("sleep 1 dance 2"), Err(vec!["dance".into(), "2".into()]));
        assert_eq!(parse("exit"), Err(vec!["exit".into()]));
        assert_eq!(parse("sleep -1"), Err(vec!["sleep".into(), "-1".into()]));
    }
}
