//! The devices of one trace: which rows are kept, and where the addresses of each go.
//!
//! A trace may hold several disks, volumes, LUNs or files whose addresses all begin at
//! 0. Side by side ([`DeviceMode::Separate`]) each kept device gets 512 TiB of address
//! space, in order of first appearance, so that two never fall on the same sector;
//! fitting by `compact` packs them onto a drive. A trace of one device is unchanged.
//!
//! Cost: a comparison with the device of the row before, else one hash of its name.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use super::fields::Flaw;
use super::parser::Device;
use crate::{MAX_SECTORS, OpKind, Request, WorkloadError, names};

/// Address space of each device if there are several \[sectors\]: 512 TiB, assumed,
/// above any single volume of the published traces.
const STRIDE_SECTORS: u64 = 1 << 40;
/// Most devices of one trace, which is what the addresses have room for; Tencent's
/// has 5,584 volumes.
const MAX_DEVICES: usize = (MAX_SECTORS / STRIDE_SECTORS) as usize;
/// Longest name of a device \[bytes\]. Source: PATH_MAX of Linux, for fio's files.
const MAX_NAME_BYTES: usize = 4096;

/// How several devices of one trace share the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceMode {
    /// Side by side: no two devices on the same sectors.
    Separate,
    /// All at their own addresses, on the same sectors.
    Shared,
}

impl DeviceMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::Separate, Self::Shared];

    /// The name users type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Display for DeviceMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DeviceMode {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mode = Self::ALL.into_iter().find(|mode| mode.name() == text);
        mode.ok_or_else(|| names::unknown("way to place devices", text, &Self::ALL.map(Self::name)))
    }
}

/// What a trace says about one of its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceUse {
    /// Name, as `--select` takes it.
    pub name: String,
    /// Rows about it.
    pub rows: u64,
    /// Largest end of a row on it \[sectors of the device\].
    pub end_sectors: u64,
    /// Whether its rows are kept.
    pub kept: bool,
    /// What is added to its addresses \[sectors\].
    pub base_sectors: u64,
}

/// All devices seen so far.
#[derive(Debug)]
pub(crate) struct Devices {
    pub(crate) seen: Vec<DeviceUse>,
    pub(crate) mode: DeviceMode,
    select: Vec<String>,
    by_name: HashMap<Vec<u8>, usize>,
    /// The device of the row before, as it stood there, and its index.
    last: (Vec<u8>, usize),
    key: Vec<u8>,
    n_kept: u64,
}

impl Devices {
    pub(crate) fn new(mode: DeviceMode, select: &[String]) -> Self {
        Self {
            seen: Vec::new(),
            mode,
            select: select.to_vec(),
            by_name: HashMap::new(),
            last: (Vec::new(), usize::MAX),
            key: Vec::new(),
            n_kept: 0,
        }
    }

    /// Moves a request to where its device is placed; false if its device is left out.
    pub(crate) fn place(
        &mut self,
        device: Device<'_>,
        request: &mut Request,
    ) -> Result<bool, Flaw> {
        let index = self.index(device)?;
        let several = self.n_kept > 1 && self.mode == DeviceMode::Separate;
        let entry = &mut self.seen[index];
        if entry.kept && several && request.end() > STRIDE_SECTORS {
            return Err(too_far(&entry.name, request.end()));
        }
        entry.rows += 1;
        entry.end_sectors = entry.end_sectors.max(request.end());
        if request.op != OpKind::Flush {
            request.lba.0 += entry.base_sectors;
        }
        Ok(entry.kept)
    }

    /// Selected names that no row had.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &str> {
        let seen = |name: &str| self.seen.iter().any(|device| same(&device.name, name));
        self.select.iter().map(String::as_str).filter(move |name| !seen(name))
    }

    fn index(&mut self, device: Device<'_>) -> Result<usize, Flaw> {
        self.key.clear();
        self.key.extend_from_slice(device.name);
        if let Some((between, second)) = device.second {
            self.key.push(between);
            self.key.extend_from_slice(second);
        }
        if self.last.1 != usize::MAX && self.last.0 == self.key {
            return Ok(self.last.1);
        }
        let index = match self.by_name.get(&self.key) {
            Some(&index) => index,
            None => self.add()?,
        };
        self.last.0.clone_from(&self.key);
        self.last.1 = index;
        Ok(index)
    }

    fn add(&mut self) -> Result<usize, Flaw> {
        if self.seen.len() >= MAX_DEVICES {
            let found = format!("one more («{}»)", names::excerpt(&self.key));
            return Err(Flaw::new(format!("at most {MAX_DEVICES} devices in a trace"), found));
        }
        if self.key.len() > MAX_NAME_BYTES {
            let found = format!("{} bytes", self.key.len());
            let expected = format!("a device name of at most {MAX_NAME_BYTES} bytes");
            return Err(Flaw::new(expected, found));
        }
        let name = String::from_utf8_lossy(&self.key).into_owned();
        let kept = self.select.is_empty() || self.select.iter().any(|s| same(&name, s));
        let slot = if kept { self.n_kept } else { 0 };
        if kept && slot == 1 && self.mode == DeviceMode::Separate {
            let far = self.seen.iter().find(|d| d.kept && d.end_sectors > STRIDE_SECTORS);
            if let Some(far) = far {
                return Err(too_far(&far.name, far.end_sectors));
            }
        }
        let base_sectors = match self.mode {
            DeviceMode::Separate => slot * STRIDE_SECTORS,
            DeviceMode::Shared => 0,
        };
        self.n_kept += u64::from(kept);
        self.seen.push(DeviceUse { name, rows: 0, end_sectors: 0, kept, base_sectors });
        self.by_name.insert(self.key.clone(), self.seen.len() - 1);
        Ok(self.seen.len() - 1)
    }
}

/// Whether a device is what a user typed. Numbers of block devices stand with a comma
/// in blkparse and with a colon elsewhere.
fn same(name: &str, typed: &str) -> bool {
    name == typed || name == typed.replace(',', ":")
}

fn too_far(name: &str, end: u64) -> Flaw {
    let name = names::excerpt(name.as_bytes());
    Flaw::new(
        "ends below 512 TiB on each device of a trace with several",
        format!("sector {end} on {name}"),
    )
    .advise(
        "keep one device with --select, or let all share one address space with --trace-devices",
    )
}

#[cfg(test)]
mod tests {
    use flashwise_hint::Lba;

    use super::*;

    fn place(devices: &mut Devices, name: &str, lba: u64) -> Result<Option<u64>, Flaw> {
        let mut request = Request::new(OpKind::Read, Lba(lba), 8);
        let kept = devices.place(Device::named(name.as_bytes()), &mut request)?;
        Ok(kept.then_some(request.lba.0))
    }

    #[test]
    fn separate_devices_never_meet_and_shared_ones_do() {
        let mut apart = Devices::new(DeviceMode::Separate, &[]);
        for (name, base) in [("a", 0), ("b", 1), ("c", 2), ("a", 0), ("b", 1)] {
            assert_eq!(place(&mut apart, name, 5).unwrap(), Some(base * STRIDE_SECTORS + 5));
        }
        assert!(place(&mut apart, "a", STRIDE_SECTORS).is_err());
        let mut shared = Devices::new(DeviceMode::Shared, &[]);
        assert_eq!(place(&mut shared, "a", 5).unwrap(), place(&mut shared, "b", 5).unwrap());
    }

    #[test]
    fn one_device_has_the_whole_space_until_a_second_comes() {
        let mut devices = Devices::new(DeviceMode::Separate, &[]);
        let far = MAX_SECTORS - 8;
        assert_eq!(place(&mut devices, "a", far).unwrap(), Some(far));
        let flaw = place(&mut devices, "b", 0).unwrap_err();
        assert!(flaw.expected.contains("512 TiB") && flaw.found.contains("on a"), "{flaw:?}");
    }

    #[test]
    fn selected_devices_are_placed_as_if_alone() {
        let select = ["b".to_owned(), "8,16".to_owned(), "none".to_owned()];
        let mut devices = Devices::new(DeviceMode::Separate, &select);
        assert_eq!(place(&mut devices, "a", 5).unwrap(), None);
        assert_eq!(place(&mut devices, "b", 5).unwrap(), Some(5));
        assert_eq!(place(&mut devices, "8:16", 5).unwrap(), Some(STRIDE_SECTORS + 5));
        assert_eq!(devices.absent().collect::<Vec<_>>(), ["none"]);
    }
}
