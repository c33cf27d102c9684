//! The derby: races between wires and real rivals, statistics and the report
