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

/// What a controller says, as far as a preset can use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controller {
    /// Model number.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Firmware revision.
    pub firmware: String,
    /// Largest transfer as a power of two of pages; 0: no limit (MDTS).
    pub mdts: u8,
    /// Capacity of all namespaces \[bytes\]; 0: not reported (TNVMCAP).
    pub total_bytes: u128,
    /// Dataset management, so trims, are taken (ONCS bit 2).
    pub deallocates: bool,
    /// There is a volatile write cache (VWC bit 0).
    pub write_cache: bool,
    /// Flexible data placement (CTRATT bit 19).
    pub placement: bool,
    /// Streams and other directives (OACS bit 5).
    pub directives: bool,
}

/// What a namespace says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Size in logical blocks, at least 1 (NSZE).
    pub n_blocks: u64,
    /// Bytes of a logical block (LBADS of the format in use).
    pub block_bytes: u32,
    /// Preferred granularity of writes \[bytes\] (NPWG).
    pub write_granularity: Option<u64>,
    /// Optimal write size \[bytes\] (NOWS).
    pub optimal_write: Option<u64>,
    /// Endurance group (ENDGID); 0: none.
    pub endurance_group: u16,
}

/// What a drive says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Of the controller.
    pub controller: Option<Controller>,
    /// Of one namespace.
    pub namespace: Option<Namespace>,
    /// Placement handles, from the log of FDP configurations (NRUH).
    pub n_handles: Option<u16>,
}

impl Identity {
    /// Decodes one structure, whichever it is, or both, the controller first.
    pub fn decode(bytes: &[u8]) -> Result<Self, IdentityError> {
        let mut identity = Self::default();
        match bytes.len() {
            IDENTIFY_BYTES if is_controller(bytes) => {
                identity.controller = Some(Controller::decode(bytes)?);
            }
            IDENTIFY_BYTES => identity.namespace = Some(Namespace::decode(bytes)?),
            n if n == 2 * IDENTIFY_BYTES => {
                let (controller, namespace) = bytes.split_at(IDENTIFY_BYTES);
                identity.controller = Some(Controller::decode(controller)?);
                identity.namespace = Some(Namespace::decode(namespace)?);
            }
            n => return Err(IdentityError::Length { bytes: n }),
        }
        Ok(identity)
    }

    /// Adds what another structure of the same drive says.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), IdentityError> {
        let other = Self::decode(bytes)?;
        if self.controller.is_some() && other.controller.is_some() {
            return Err(IdentityError::Contents { why: "two controllers are given" });
        }
        if self.namespace.is_some() && other.namespace.is_some() {
            return Err(IdentityError::Contents { why: "two namespaces are given" });
        }
        self.controller = self.controller.take().or(other.controller);
        self.namespace = self.namespace.or(other.namespace);
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
        match (&self.namespace, &self.controller) {
            (Some(n), _) => Some(n.n_blocks * u64::from(n.block_bytes)),
            (None, Some(c)) => u64::try_from(c.total_bytes).ok().filter(|&n| n > 0),
            (None, None) => None,
        }
    }
}

impl Controller {
    fn decode(b: &[u8]) -> Result<Self, IdentityError> {
        if !is_controller(b) {
            return Err(IdentityError::Contents {
                why: "serial and model number of a controller are not text",
            });
        }
        Ok(Self {
            serial: text(&b[4..24]),
            model: text(&b[24..64]),
            firmware: text(&b[64..72]),
            mdts: b[77],
            placement: u32_at(b, 96) & (1 << 19) != 0,
            directives: u16_at(b, 256) & (1 << 5) != 0,
            total_bytes: u128::from(u64_at(b, 280)) | u128::from(u64_at(b, 288)) << 64,
            deallocates: u16_at(b, 520) & (1 << 2) != 0,
            write_cache: b[525] & 1 != 0,
        })
    }
}

impl Namespace {
    fn decode(b: &[u8]) -> Result<Self, IdentityError> {
        let refused = |why| Err(IdentityError::Contents { why });
        let n_blocks = u64_at(b, 0);
        if n_blocks == 0 {
            return refused("a namespace of no blocks (is it active?)");
        }
        // FLBAS: bits 3:0 are the low, bits 6:5 the high part of the format's number.
        let format = usize::from(b[26] & 0xF | (b[26] >> 5 & 3) << 4);
        let shift = b[128 + 4 * format + 2];
        if !(9..=16).contains(&shift) {
            return refused("logical blocks of neither 512 bytes nor up to 64 KiB");
        }
        if u128::from(n_blocks) << shift > 1 << 60 {
            return refused("a namespace beyond an exabyte");
        }
        // NSFEAT bit 4 says that the preferred sizes, counted from 0, are there.
        let preferred = b[24] & (1 << 4) != 0;
        let size = |at| preferred.then(|| (u64::from(u16_at(b, at)) + 1) << shift);
        Ok(Self {
            n_blocks,
            block_bytes: 1 << shift,
            write_granularity: size(64),
            optimal_write: size(72),
            endurance_group: u16_at(b, 102),
        })
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
        let c = both.controller.as_ref().expect("a controller");
        assert_eq!((c.model.as_str(), c.serial.as_str()), ("ACME FAST 960", "S5XANX0W"));
        assert_eq!((c.firmware.as_str(), c.mdts), ("FW1.2", 5));
        assert!(c.deallocates && c.write_cache && c.placement && c.directives);
        let n = both.namespace.expect("a namespace");
        assert_eq!((n.n_blocks, n.block_bytes), (234_423_126, 4096));
        assert_eq!((n.write_granularity, n.optimal_write), (Some(4 * 4096), Some(32 * 4096)));
        assert_eq!(n.endurance_group, 7);
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
                let model = identity.controller.as_ref().map_or("", |c| &c.model);
                prop_assert!(model.chars().all(|c| c.is_ascii_graphic() || c == ' '));
                prop_assert!(identity.capacity_bytes() != Some(0));
            }
        }
    }
}
