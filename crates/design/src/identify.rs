//! What an NVMe drive says about itself: the identify data structures, decoded.
//!
//! Pure functions over the bytes, as `nvme id-ctrl -b` and `nvme id-ns -b` write
//! them. Any bytes decode or are refused; text is cut to printable ASCII. Offsets:
//! NVM Express Base Specification 2.0, figure "Identify Controller", and NVM Command
//! Set Specification 1.0, figure "Identify Namespace".

/// Length of an identify data structure.
pub const IDENTIFY_BYTES: usize = 4096;

/// Identify data that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Neither one nor two structures.
    #[error(
        "{bytes} bytes: expected 4096 (identify controller or namespace) or 8192 (both, the \
         controller first), as «nvme id-ctrl -b /dev/nvme0» and «nvme id-ns -b /dev/nvme0n1» write \
         them"
    )]
    Length {
        /// Bytes there were.
        bytes: usize,
    },
    /// The structure is not what its place says.
    #[error("not identify data: {why}")]
    Contents {
        /// What is wrong.
        why: &'static str,
    },
}

/// What a controller and a namespace say, as far as a preset can use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Model number; empty: no controller data.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Firmware revision.
    pub firmware: String,
    /// Largest transfer as a power of two of 4 KiB pages; 0: no limit (MDTS).
    pub mdts: Option<u8>,
    /// Capacity of all namespaces \[bytes\]; 0: not reported (TNVMCAP).
    pub total_bytes: u128,
    /// Dataset management, so trims, are taken (ONCS bit 2).
    pub deallocates: Option<bool>,
    /// There is a volatile write cache (VWC bit 0).
    pub write_cache: Option<bool>,
    /// Flexible data placement (CTRATT bit 19).
    pub placement: bool,
    /// Streams and other directives (OACS bit 5).
    pub directives: bool,
    /// Size of the namespace in logical blocks (NSZE); 0: no namespace data.
    pub n_blocks: u64,
    /// Bytes of a logical block (LBADS of the format in use).
    pub block_bytes: u32,
    /// Preferred granularity of writes \[logical blocks\] (NPWG); 0: not reported.
    pub write_granularity_blocks: u32,
    /// Optimal write size \[logical blocks\] (NOWS); 0: not reported.
    pub optimal_write_blocks: u32,
    /// Endurance group of the namespace (ENDGID).
    pub endurance_group: u16,
    /// Placement handles, from the log of FDP configurations (NRUH).
    pub n_handles: Option<u16>,
}

impl Identity {
    /// Decodes one structure, whichever it is, or both, the controller first.
    pub fn decode(bytes: &[u8]) -> Result<Self, IdentityError> {
        let mut identity = Self::default();
        match bytes.len() {
            IDENTIFY_BYTES if is_controller(bytes) => identity.add_controller(bytes)?,
            IDENTIFY_BYTES => identity.add_namespace(bytes)?,
            n if n == 2 * IDENTIFY_BYTES => {
                identity.add_controller(&bytes[..IDENTIFY_BYTES])?;
                identity.add_namespace(&bytes[IDENTIFY_BYTES..])?;
            }
            n => return Err(IdentityError::Length { bytes: n }),
        }
        Ok(identity)
    }

    /// Adds what another structure of the same drive says.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), IdentityError> {
        let other = Self::decode(bytes)?;
        let twice = |what| Err(IdentityError::Contents { why: what });
        match (other.model.is_empty(), other.n_blocks == 0) {
            (false, _) if !self.model.is_empty() => twice("two controllers are given"),
            (_, false) if self.n_blocks > 0 => twice("two namespaces are given"),
            (true, _) => {
                let namespace = other;
                self.n_blocks = namespace.n_blocks;
                self.block_bytes = namespace.block_bytes;
                self.write_granularity_blocks = namespace.write_granularity_blocks;
                self.optimal_write_blocks = namespace.optimal_write_blocks;
                self.endurance_group = namespace.endurance_group;
                Ok(())
            }
            (false, _) => {
                let namespace = std::mem::replace(self, other);
                self.n_blocks = namespace.n_blocks;
                self.block_bytes = namespace.block_bytes;
                self.write_granularity_blocks = namespace.write_granularity_blocks;
                self.optimal_write_blocks = namespace.optimal_write_blocks;
                self.endurance_group = namespace.endurance_group;
                Ok(())
            }
        }
    }

    fn add_controller(&mut self, b: &[u8]) -> Result<(), IdentityError> {
        if !is_controller(b) {
            return Err(IdentityError::Contents {
                why: "serial and model number of a controller are not text",
            });
        }
        self.serial = text(&b[4..24]);
        self.model = text(&b[24..64]);
        self.firmware = text(&b[64..72]);
        self.mdts = Some(b[77]);
        self.placement = u32_at(b, 96) & (1 << 19) != 0;
        self.directives = u16_at(b, 256) & (1 << 5) != 0;
        self.total_bytes = u128::from(u64_at(b, 280)) | u128::from(u64_at(b, 288)) << 64;
        self.deallocates = Some(u16_at(b, 520) & (1 << 2) != 0);
        self.write_cache = Some(b[525] & 1 != 0);
        Ok(())
    }

    fn add_namespace(&mut self, b: &[u8]) -> Result<(), IdentityError> {
        let refused = |why| Err(IdentityError::Contents { why });
        self.n_blocks = u64_at(b, 0);
        if self.n_blocks == 0 {
            return refused("a namespace of no blocks (is it active?)");
        }
        // FLBAS: bits 3:0 are the low, bits 6:5 the high part of the format's number.
        let format = usize::from(b[26] & 0xF | (b[26] >> 5 & 3) << 4);
        let shift = b[128 + 4 * format + 2];
        if !(9..=16).contains(&shift) {
            return refused("logical blocks of neither 512 bytes nor up to 64 KiB");
        }
        self.block_bytes = 1 << shift;
        if u128::from(self.n_blocks) << shift > 1 << 60 {
            return refused("a namespace beyond an exabyte");
        }
        // NSFEAT bit 4 says that the preferred sizes, counted from 0, are there.
        if b[24] & (1 << 4) != 0 {
            self.write_granularity_blocks = u32::from(u16_at(b, 64)) + 1;
            self.optimal_write_blocks = u32::from(u16_at(b, 72)) + 1;
        }
        self.endurance_group = u16_at(b, 102);
        Ok(())
    }

    /// Reads the number of placement handles from a log of FDP configurations (log
    /// page 20h): NRUH of the first, which is the one in use where there is one.
    pub fn add_placement_log(&mut self, log: &[u8]) {
        const FIRST: usize = 16;
        if let Some(n @ 1..) = log.get(FIRST + 8..FIRST + 10).map(|b| u16_at(b, 0)) {
            self.n_handles = Some(n);
        }
    }

    /// Capacity \[bytes\]: of the namespace, or else of the whole drive.
    pub fn capacity_bytes(&self) -> Option<u64> {
        match self.n_blocks {
            0 => u64::try_from(self.total_bytes).ok().filter(|&n| n > 0),
            n => Some(n * u64::from(self.block_bytes)),
        }
    }
}

/// Serial number and model of a controller are ASCII, padded with blanks; the first
/// bytes of a namespace are the high part of its size, and zeros.
fn is_controller(b: &[u8]) -> bool {
    b.len() >= 64 && b[4..64].iter().all(|&c| (0x20..0x7F).contains(&c))
}

fn text(bytes: &[u8]) -> String {
    let printable = bytes.iter().filter(|c| (0x20..0x7F).contains(*c)).map(|&c| char::from(c));
    printable.collect::<String>().trim().to_owned()
}

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from(u16_at(b, at)) | u32::from(u16_at(b, at + 2)) << 16
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from(u32_at(b, at)) | u64::from(u32_at(b, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(b: &mut [u8], at: usize, bytes: &[u8]) {
        b[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn controller() -> Vec<u8> {
        let mut b = vec![0; IDENTIFY_BYTES];
        put(&mut b, 0, &0x144Du16.to_le_bytes());
        put(&mut b, 4, format!("{:20}", "S5XANX0W").as_bytes());
        put(&mut b, 24, format!("{:40}", "ACME FAST 960").as_bytes());
        put(&mut b, 64, b"FW1.2   ");
        b[77] = 5;
        put(&mut b, 96, &(1u32 << 19).to_le_bytes());
        put(&mut b, 256, &(1u16 << 5).to_le_bytes());
        put(&mut b, 280, &960_197_124_096u64.to_le_bytes());
        put(&mut b, 520, &0x0004u16.to_le_bytes());
        b[525] = 1;
        b
    }

    fn namespace() -> Vec<u8> {
        let mut b = vec![0; IDENTIFY_BYTES];
        put(&mut b, 0, &234_423_126u64.to_le_bytes());
        b[24] = 1 << 4;
        b[25] = 1;
        b[26] = 1;
        put(&mut b, 64, &3u16.to_le_bytes());
        put(&mut b, 72, &31u16.to_le_bytes());
        put(&mut b, 102, &7u16.to_le_bytes());
        put(&mut b, 128, &[0, 0, 9, 0]);
        put(&mut b, 132, &[0, 0, 12, 0]);
        b
    }

    #[test]
    fn both_structures_decode_in_every_way_they_can_be_given() {
        let both = Identity::decode(&[controller(), namespace()].concat()).expect("both");
        assert_eq!((both.model.as_str(), both.serial.as_str()), ("ACME FAST 960", "S5XANX0W"));
        assert_eq!((both.firmware.as_str(), both.mdts), ("FW1.2", Some(5)));
        assert_eq!((both.deallocates, both.write_cache), (Some(true), Some(true)));
        assert!(both.placement && both.directives);
        assert_eq!((both.n_blocks, both.block_bytes), (234_423_126, 4096));
        assert_eq!((both.write_granularity_blocks, both.optimal_write_blocks), (4, 32));
        assert_eq!(both.endurance_group, 7);
        assert_eq!(both.capacity_bytes(), Some(234_423_126 * 4096));
        for parts in [[controller(), namespace()], [namespace(), controller()]] {
            let mut one = Identity::decode(&parts[0]).expect("one");
            one.add(&parts[1]).expect("the other");
            assert_eq!(one, both);
            assert!(one.add(&parts[1]).is_err(), "twice");
        }
        let alone = Identity::decode(&controller()).expect("a controller");
        assert_eq!(alone.capacity_bytes(), Some(960_197_124_096));
    }

    #[test]
    fn what_is_no_identify_data_is_refused() {
        for n in [0, 512, 4095, 4097, 8191, 12_288] {
            let message = Identity::decode(&vec![0; n]).unwrap_err().to_string();
            assert!(message.contains("nvme id-ctrl -b"), "{message}");
        }
        assert!(Identity::decode(&[0; IDENTIFY_BYTES]).is_err(), "no namespace");
        assert!(Identity::decode(&[0xFF; IDENTIFY_BYTES]).is_err());
        assert!(Identity::decode(&[namespace(), controller()].concat()).is_err(), "order");
    }

    #[test]
    fn the_log_of_placement_says_how_many_handles_there_are() {
        let mut log = vec![0; 16 + 64];
        put(&mut log, 16 + 4, &1u32.to_le_bytes());
        put(&mut log, 16 + 8, &8u16.to_le_bytes());
        let mut identity = Identity::default();
        identity.add_placement_log(&log);
        assert_eq!(identity.n_handles, Some(8));
        identity.add_placement_log(&[]);
        assert_eq!(identity.n_handles, Some(8));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_are_refused(
            bytes in proptest::collection::vec(any::<u8>(), IDENTIFY_BYTES),
            twice in any::<bool>(),
            controller_text in any::<bool>(),
        ) {
            let mut bytes = if twice { bytes.repeat(2) } else { bytes };
            if controller_text {
                bytes[4..64].fill(b'x');
            }
            if let Ok(identity) = Identity::decode(&bytes) {
                prop_assert!(identity.model.chars().all(|c| c.is_ascii_graphic() || c == ' '));
                prop_assert!(identity.capacity_bytes() != Some(0));
            }
        }
    }
}
