//! Interface model to stubs and skeletons
