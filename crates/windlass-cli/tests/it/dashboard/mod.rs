//! The dashboard as people use it: a real `windlass serve`, in a real browser without a screen.

mod doors;
mod fixture;
mod keyboard;
mod large;
mod letters;
mod live;
mod pages;
mod pictures;
mod private;
mod report;
mod roles;
mod scene;
mod scripts;
