//! Where copies are written: a file, or a program that reads them.

use super::Copy;
use super::capture::{self, CaptureState};
use super::place::Program;
use crate::config::CopyTo;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, PoisonError};

/// Copies as they are to be written, which the system has not taken yet.
#[derive(Default)]
pub(super) struct Unwritten {
    pub(super) octets: Vec<u8>,
    pub(super) copies: u64,
}

impl Unwritten {
    /// Writes all of it. What the system has taken before an error is not written again.
    fn write(&mut self, to: &mut impl Write) -> io::Result<()> {
        let (mut taken, mut result) = (0, Ok(()));
        while let Some(left) = self.octets.get(taken..).filter(|left| !left.is_empty() && result.is_ok()) {
            match to.write(left) {
                Ok(0) => result = Err(ErrorKind::WriteZero.into()),
                Ok(octets) => taken += octets,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
        }
        self.octets.drain(..taken);
        if self.octets.is_empty() {
            self.copies = 0;
        }
        result
    }
}

/// An open place.
pub(super) enum Output {
    Lines(File),
    Capture(File, Box<CaptureState>),
    Program(Program, ChildStdin),
}

impl Output {
    /// Opens a file to append to it, and writes what it had no room for before; or starts the program.
    pub(super) fn open(to: &CopyTo, program: &Program, unwritten: &mut Unwritten) -> io::Result<Self> {
        match to {
            CopyTo::Lines(path) => {
                let mut file = append(path)?;
                unwritten.write(&mut file)?;
                Ok(Self::Lines(file))
            }
            CopyTo::Capture(path) => {
                let mut file = append(path)?;
                unwritten.write(&mut file)?;
                // A section of its own each time: captures may be put one behind the other.
                unwritten.octets.extend(capture::section());
                Ok(Self::Capture(file, Box::default()))
            }
            CopyTo::Program(command) => {
                // The one before has ended, or cannot be written to.
                end(program);
                let mut child = Command::new("sh")
                    .arg("-c")
                    .arg(command)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .spawn()?;
                match child.stdin.take() {
                    Some(input) => {
                        *program.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
                        Ok(Self::Program(Arc::clone(program), input))
                    }
                    None => Err(io::Error::other("the program has no standard input")),
                }
            }
            CopyTo::Count | CopyTo::Route(_) => Err(io::Error::other("nothing is written there")),
        }
    }

    /// Puts a copy behind what waits to be written. Whether it can be spelled.
    pub(super) fn put(&mut self, copy: &Copy, unwritten: &mut Unwritten) -> bool {
        match self {
            Self::Lines(_) | Self::Program(..) => {
                let Ok(line) = copy.line() else { return false };
                unwritten.octets.extend(line);
            }
            Self::Capture(_, tape) => unwritten.octets.extend(tape.packets(copy)),
        }
        unwritten.copies += 1;
        true
    }

    /// Has all that was put leave this process. A program that has ended is found here.
    pub(super) fn flush(&mut self, unwritten: &mut Unwritten) -> io::Result<()> {
        match self {
            Self::Lines(file) | Self::Capture(file, _) => unwritten.write(file),
            Self::Program(program, input) => {
                unwritten.write(input)?;
                let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
                match program.as_mut().map(Child::try_wait).transpose()?.flatten() {
                    Some(status) => Err(io::Error::other(format!("the program ended ({status})"))),
                    None => Ok(()),
                }
            }
        }
    }

    /// Whether what is not written yet can go to the same place once that is opened again. Another run of a program would begin in the
    /// middle of a line.
    pub(super) fn goes_on(&self) -> bool {
        !matches!(self, Self::Program(..))
    }
}

/// Ends a program, if there is one, and asks how it ended: else the system would keep that.
pub(super) fn end(program: &Program) {
    let ended = program.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut ended) = ended {
        // It may have ended by itself.
        let _ = ended.kill();
        let _ = ended.wait();
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many octets, three at a time, and then none.
    struct Full(Vec<u8>, usize);

    impl Write for Full {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            let taken = octets.len().min(3).min(self.1 - self.0.len());
            if taken == 0 && !octets.is_empty() {
                return Err(ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(&octets[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_had_no_room_goes_on_where_it_stopped() {
        let mut unwritten = Unwritten { octets: b"one\ntwo\n".to_vec(), copies: 2 };
        let mut disk = Full(Vec::new(), 5);
        assert_eq!(unwritten.write(&mut disk).unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!((&disk.0[..], &unwritten.octets[..], unwritten.copies), (&b"one\nt"[..], &b"wo\n"[..], 2));
        disk.1 = 100;
        unwritten.write(&mut disk).unwrap();
        assert_eq!((&disk.0[..], unwritten.octets.len(), unwritten.copies), (&b"one\ntwo\n"[..], 0, 0));
        unwritten.write(&mut disk).unwrap();
    }
}
