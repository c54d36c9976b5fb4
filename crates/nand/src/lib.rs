//! NAND in virtual time: geometry, cell modes, dies, channels, wear.
