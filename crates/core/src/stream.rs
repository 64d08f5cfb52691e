//! The modes piece by piece.
