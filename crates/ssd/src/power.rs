//! Power failure and power-on.

use flashwise_ftl::{Ftl, FtlConfig, Media, StoreError};
use flashwise_nand::Nand;

use crate::config::DeviceConfig;
use crate::device::Ssd;

/// What is left of a drive without power: its media, and its wear.
#[derive(Clone, Debug)]
pub struct PoweredOff {
    cfg: DeviceConfig,
    ftl_cfg: FtlConfig,
    media: Media,
    nand: Nand,
}

impl Ssd {
    /// Power fails at `now_ns`. Programs and erases under way are torn; what was
    /// only buffered is lost, unless the buffer is protected. `None`: the drive
    /// keeps no out-of-band data (see [`crate::Options`]).
    pub fn power_cut(mut self, now_ns: u64) -> Option<PoweredOff> {
        self.nand.advance_all(now_ns);
        self.apply_done(now_ns);
        let torn = if self.ftl.config().power_protected {
            self.rest();
            vec![]
        } else {
            self.nand.cut(now_ns)
        };
        let (ftl_cfg, media) = self.ftl.power_cut(&torn, &mut self.nand)?;
        self.nand.power_on();
        Some(PoweredOff { cfg: self.cfg, ftl_cfg, media, nand: self.nand })
    }
}

impl PoweredOff {
    /// Power returns: the drive is rebuilt from its media. Its clock starts at 0.
    pub fn power_on(mut self) -> Result<Ssd, StoreError> {
        let ftl = Ftl::recover(self.ftl_cfg, self.media, &mut self.nand)?;
        let ssd = Ssd::assemble(self.cfg, ftl, self.nand);
        Ok(ssd.expect("the preset was accepted before"))
    }
}
