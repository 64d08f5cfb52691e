//! The planner: choosing, calibration, groups of devices and verification of results.

mod calibrate;
mod group;
mod planning;
mod timing;
mod verify;
mod verify_resident;
