//! What statements answer: in scripts, by privileges, and when they are generated. One program, as
//! each that runs statements compiles the whole engine.

mod generated;
mod golden;
mod postgres;
mod privileges;
