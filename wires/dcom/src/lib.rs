//! The DCOM wire; for now its value codec, NDR
