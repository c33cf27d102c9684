//! Objects on the caller's side, servants on the other, and the typed reference that hides which is which.

mod calling;
mod pending;
mod raising;
mod serving;
mod target;
mod typed;

pub use pending::Pending;
pub use raising::{Exception, Raises, answer_raised, as_failure, raised, unexpected};
pub use serving::{Request, Servant, no_operation};
pub use target::{BoxFuture, Completion, Local, Object, Ready, Resolver, Target, Ticket, TypedServant};
pub(crate) use typed::ObjectLocation;
pub use typed::{Ref, Remote};
