//! Tasks as their users meet them: nodes that are processes, commands that are typed.

mod commands;
mod node;
mod regressions;
mod run;
mod secured;
mod two_nodes;
