//! Writing strings (C706 14.3.4).

use super::NdrSink;

impl NdrSink {
    /// A string as a conformant and varying array of characters, ended by a NUL.
    /// `count` is the number of units with the NUL, as the maximum and as the actual count; the offset is 0.
    pub(super) fn string(&mut self, narrow: bool, count: u32, value: &str) {
        self.u32(count);
        self.u32(0);
        self.u32(count);
        if narrow {
            let bytes = self.segment().bytes();
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(0);
        } else {
            self.units(value);
            self.u16(0);
        }
    }

    /// UTF-16.
    pub(super) fn units(&mut self, value: &str) {
        let little = self.little;
        let bytes = self.segment().bytes();
        bytes.reserve(value.len() * 2);
        for unit in value.encode_utf16() {
            bytes.extend_from_slice(&if little { unit.to_le_bytes() } else { unit.to_be_bytes() });
        }
    }
}
