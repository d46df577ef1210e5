//! A way in for the fuzzer, which could never guess a checksum: a data folder made of its bytes, in
//! which every checksum is right and nothing else need be.

use std::{fs, io, path::Path};

use mvcc::Revision;
use uuid::Uuid;

use super::{
    folder::{self, FORMAT},
    frame,
    segment::{Extent, Header},
    wire::Fields,
};

/// The journal that all made-up segments belong to.
const IDENTITY: Uuid = Uuid::from_u128(0x77_69_6e_64_6c_61_73_73);

/// Writes a data folder with these segments, each given by the fields of its header (kind, frames,
/// id, first sequence, next sequence, base, last) and its frames. What is too short to have a header
/// is left out.
///
/// # Errors
///
/// If the folder cannot be written.
pub fn lay_out(dir: &Path, segments: &[&[u8]]) -> io::Result<()> {
    let log = folder::log_of(dir);
    fs::create_dir_all(&log)?;
    fs::write(dir.join("FORMAT"), format!("format {FORMAT}\nidentity {IDENTITY}\n"))?;
    for segment in segments {
        let mut fields = Fields::new(segment);
        let Some(header) = read_header(&mut fields) else { continue };
        let mut frames = segment[segment.len() - fields.remaining()..].to_vec();
        frame::seal(&mut frames, header.seed());
        fs::write(log.join(header.file_name()), [header.encode(), frames].concat())?;
    }
    Ok(())
}

fn read_header(fields: &mut Fields<'_>) -> Option<Header> {
    let (kind, frames) = (fields.u32()?, fields.u32()?);
    let (id, first_sequence, next_sequence) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let (base, last): (Revision, Revision) = (fields.revision()?, fields.revision()?);
    let extent = match kind {
        0 => Extent::Log,
        _ => Extent::Rewritten { next_sequence, last, frames },
    };
    Some(Header { identity: IDENTITY, id, first_sequence, base, extent })
}
