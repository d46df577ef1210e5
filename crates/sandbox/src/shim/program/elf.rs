//! As much of the format of programs as tells how far they are loaded.

/// Of a 64-bit little-endian file: where each number stands that is needed, and how wide a row of the
/// program headers must be to hold them.
const MAGIC: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const ROWS_AT: usize = 0x20;
const ROW_BYTES_AT: usize = 0x36;
const ROW_COUNT_AT: usize = 0x38;
const ROW_OFFSET_AT: usize = 0x08;
const ROW_LENGTH_AT: usize = 0x20;

/// Where in the file the last part ends that is loaded, or that the loader reads. `None` if these are
/// not the first bytes of such a file, with all program headers in them.
pub(super) fn loaded_bytes(head: &[u8]) -> Option<u64> {
    if !head.starts_with(&MAGIC) {
        return None;
    }
    let rows_at = usize::try_from(u64_at(head, ROWS_AT)?).ok()?;
    let row_bytes = usize::from(u16_at(head, ROW_BYTES_AT)?);
    let row_count = usize::from(u16_at(head, ROW_COUNT_AT)?);
    let mut end = rows_at.checked_add(row_bytes.checked_mul(row_count)?)? as u64;
    for row in 0..row_count {
        let row = head.get(rows_at + row * row_bytes..)?;
        let (offset, length) = (u64_at(row, ROW_OFFSET_AT)?, u64_at(row, ROW_LENGTH_AT)?);
        end = end.max(offset.checked_add(length)?);
    }
    (row_count > 0).then_some(end)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head with these parts: where each begins in the file, and its length.
    fn head(parts: &[(u64, u64)]) -> Vec<u8> {
        let mut head = vec![0; 0x40];
        head[..MAGIC.len()].copy_from_slice(&MAGIC);
        head[ROWS_AT..][..8].copy_from_slice(&0x40_u64.to_le_bytes());
        head[ROW_BYTES_AT..][..2].copy_from_slice(&0x38_u16.to_le_bytes());
        head[ROW_COUNT_AT] = u8::try_from(parts.len()).unwrap();
        for (offset, length) in parts {
            let mut row = [0; 0x38];
            row[ROW_OFFSET_AT..][..8].copy_from_slice(&offset.to_le_bytes());
            row[ROW_LENGTH_AT..][..8].copy_from_slice(&length.to_le_bytes());
            head.extend(row);
        }
        head
    }

    #[test]
    fn the_part_that_ends_last_counts() {
        assert_eq!(loaded_bytes(&head(&[(0, 500), (4096, 100), (1000, 50)])), Some(4196));
        assert_eq!(loaded_bytes(&head(&[(0, 1)])), Some(0x40 + 0x38), "headers are read too");
    }

    #[test]
    fn what_is_not_understood_is_not_cut() {
        let whole = head(&[(0, 500), (4096, 100)]);
        for cut in 0..whole.len() {
            let is_row_whole = cut >= 0x40 + 0x38 + ROW_LENGTH_AT + 8;
            assert_eq!(loaded_bytes(&whole[..cut]).is_some(), is_row_whole, "{cut}");
        }
        assert_eq!(loaded_bytes(b"#!/bin/sh"), None);
        assert_eq!(loaded_bytes(&head(&[])), None);
        assert_eq!(loaded_bytes(&head(&[(u64::MAX, 2)])), None);
    }

    /// This very test: what is for debuggers is most of it.
    #[test]
    fn a_real_program_is_cut() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let bytes = loaded_bytes(&program[..4096]).unwrap();
        assert!(bytes <= program.len() as u64, "{bytes}");
    }
}
