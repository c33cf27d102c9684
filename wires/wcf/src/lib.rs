//! The WCF wire; for now its value codec, .NET binary XML
