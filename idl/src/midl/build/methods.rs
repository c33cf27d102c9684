//! Methods: parameters, directions, results.
//!
//! What a method returns travels in three ways (`Style`). A method of COM returns an HRESULT, which is no
//! value here: the wire carries it apart, and a failure becomes an error. Its results are `out` parameters,
//! and one marked `retval` becomes the return value. A remote procedure may return anything; NDR puts that
//! behind all other results (C706, 14.4).
//!
//! A method that cannot travel is left out by the caller with the reason in `stays`; its number stays taken
//! where methods are called by number.
//!
//! Accessors of properties get the prefixes `get_`, `put_` and `putref_`, as type libraries name them in C++.

use super::super::ast::{Attribute, Expr, Member, Method, TypeKind, TypeSpec, find, has};
use super::super::omitted;
use super::places::Role;
use super::types::{BINDING, HANDLE};
use super::{Builder, MS_UNION, Ty, doc, is_named};
use crate::report::Span;
use everywire_model::contract::SUCCESS;
use everywire_model::shape::{Field, Name};
use everywire_model::{Direction, Notes, Operation, Parameter, Shape};
use std::collections::HashSet;

/// Why a method without an HRESULT is for callers in the same process alone: its caller could not learn that
/// the connection broke. It is a note in the contract, and no mistake.
const NOT_HRESULT: &str =
    "a method of an object returns an HRESULT, and results are `[out, retval]` parameters";

/// How the results of an interface's methods travel. It follows from the kind of the interface, for all its
/// methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Every method returns an HRESULT, which the wire adds.
    Object,
    /// By name, with results as they are written.
    Dispatch,
    /// A remote procedure: what it returns travels after all else.
    Procedure,
}

/// What a method does for a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// `propget`: it returns the value.
    Get,
    /// `propput`: its last parameter is the value.
    Put,
    /// `propputref`: the value is a reference that is kept, not what it refers to.
    PutReference,
}

impl Builder<'_> {
    /// The operation that a method is, and what it does for a property. None after a mistake, or with a
    /// reason in `stays`.
    pub(super) fn method(&mut self, method: &Method, style: Style) -> Option<(Operation, Option<Access>)> {
        let attributes = &method.attributes;
        let ident = &method.declarator.ident;
        let access = access(attributes);
        // A union has one form wherever it is used, so that there would have to be a second union for this method.
        if has(attributes, MS_UNION) && !self.ms_union {
            return self.stay("`ms_union` is only supported at interfaces and types, not at methods");
        }
        let (mut parameters, retval) = self.parameters(method, style)?;
        let mut returns = retval.unwrap_or(Shape::Void);
        let result = self.result(method, style)?;
        match (style, result) {
            // The HRESULT was checked by `result` and is no value.
            (Style::Object, _) => {}
            (_, Shape::Void) => {}
            (Style::Procedure, result) if parameters.iter().any(|p| p.direction.comes_out()) => {
                // It stands last on the wire, so it is the last of the results.
                let field = Field { name: Name::from("return"), shape: result };
                parameters.push(Parameter { direction: Direction::Out, field });
            }
            (_, result) if matches!(returns, Shape::Void) => returns = result,
            (_, _) => {
                self.problem(ident.span, "a method with `retval` returns nothing else");
                return None;
            }
        }
        let name = match access {
            Some(Access::Get) => format!("get_{}", ident.name),
            Some(Access::Put) => format!("put_{}", ident.name),
            Some(Access::PutReference) => format!("putref_{}", ident.name),
            None => ident.name.clone(),
        };
        let asks = access == Some(Access::Get) && !parameters.is_empty();
        let mut operation = Operation::new(name, parameters, returns);
        // A property that is an attribute is read by its nature; one with parameters is an operation.
        operation.idempotent = has(attributes, "idempotent") || asks;
        operation.doc = doc(attributes, &method.doc);
        operation.id = self.dispid(attributes)?;
        // `maybe`: the caller waits for nothing, so there can be no result.
        operation.oneway = has(attributes, "maybe") && operation.results.fields().is_empty();
        let mut notes = omitted::notes(attributes, method.parameters.as_deref().unwrap_or_default());
        notes.extend(self.successes(attributes, style)?);
        operation.notes = Notes::Owned(notes);
        Some((operation, access))
    }

    /// `success(S_FALSE, ...)` of a method that succeeds in more than one way, as a note. The codes stay
    /// expressions, since they may be names of constants.
    #[allow(clippy::option_option)]
    fn successes(&mut self, attributes: &[Attribute], style: Style) -> Option<Option<(Name, Name)>> {
        let Some(success) = find(attributes, SUCCESS) else { return Some(None) };
        if style != Style::Object {
            self.problem(success.span, "only a method of an object says by an HRESULT how it succeeded");
            return None;
        }
        let codes: Vec<String> = success.values.iter().flatten().map(Expr::text).collect();
        Some(Some((Name::from(SUCCESS), Name::from(codes.join(", ")))))
    }

    /// `id(n)`, if it is there; nothing after a mistake.
    #[allow(clippy::option_option)]
    pub(super) fn dispid(&mut self, attributes: &[Attribute]) -> Option<Option<i32>> {
        let Some(id) = find(attributes, "id").and_then(Attribute::value) else { return Some(None) };
        let value = self.integer(id)?;
        // DISPIDs are written as negative numbers or as 0xFFFFFFFC.
        match i32::try_from(value).or_else(|_| u32::try_from(value).map(u32::cast_signed)) {
            Ok(id) => Some(Some(id)),
            Err(_) => {
                self.problem(id.span, "a DISPID has 32 bits");
                None
            }
        }
    }

    /// All parameters, and apart from them the result that is one. All of them are looked at before any can
    /// fail.
    fn parameters(&mut self, method: &Method, style: Style) -> Option<(Vec<Parameter>, Option<Shape>)> {
        let list = method.parameters.as_deref().unwrap_or_default();
        let around = self.declare_beside(list);
        let parameters = self.parameters_beside(list, style);
        self.beside = around;
        parameters
    }

    fn parameters_beside(
        &mut self,
        list: &[Member],
        style: Style,
    ) -> Option<(Vec<Parameter>, Option<Shape>)> {
        let (mut parameters, mut broken) = (Vec::with_capacity(list.len()), false);
        let mut seen = HashSet::new();
        let (mut retval, mut stays) = (None, None);
        for (index, member) in list.iter().enumerate() {
            // A binding says where to call; it is no part of the call.
            if style == Style::Procedure && self.is_binding(&member.spec) {
                continue;
            }
            let Some(parameter) = self.parameter(member, index) else {
                match self.stays.take() {
                    Some(why) => stays = Some(why),
                    None => broken = true,
                }
                continue;
            };
            let name = parameter.field.name.to_string();
            if !seen.insert(name.clone()) {
                self.problem(member.declarator.ident.span, &format!("there are two parameters `{name}`"));
                broken = true;
            }
            let result = has(&member.attributes, "retval") && index + 1 == list.len();
            // A language with one result would lose the others, so `retval` counts only where nothing else
            // comes out.
            let only = parameters.iter().all(|p: &Parameter| !p.direction.comes_out());
            if result && only && parameter.direction == Direction::Out {
                retval = Some(parameter.field.shape);
            } else {
                parameters.push(parameter);
            }
        }
        if broken {
            return None;
        }
        match stays {
            Some(why) => self.stay(why),
            None => Some((parameters, retval)),
        }
    }

    /// Whether a type is `handle_t`, or another name of it.
    fn is_binding(&self, spec: &TypeSpec) -> bool {
        let TypeKind::Name(ident) = &spec.kind else { return false };
        let named = self.types.get(&ident.name);
        is_named(spec, HANDLE) || matches!(named, Some(Ty::Stays(why)) if why.as_ref() == BINDING)
    }

    /// Without `in` and `out` it goes in.
    fn parameter(&mut self, member: &Member, index: usize) -> Option<Parameter> {
        self.room(1, member.declarator.ident.span)?;
        let attributes = &member.attributes;
        let ident = &member.declarator.ident;
        let direction = match (has(attributes, "in"), has(attributes, "out") || has(attributes, "retval")) {
            (true, true) => Direction::InOut,
            (false, true) => Direction::Out,
            _ => Direction::In,
        };
        let name = if ident.name.is_empty() { format!("arg_{}", index + 1) } else { ident.name.clone() };
        let ty = self.spec(&member.spec, &name, attributes, None)?;
        // In C, only what a pointer points to can be written by the method.
        let pointed = member.declarator.pointers > 0
            || !member.declarator.dimensions.is_empty()
            // An array is the address of its first element, also behind a name.
            || matches!(&ty, Ty::Value(typed) if matches!(typed.shape.resolved(), Shape::Array(_)))
            || matches!(ty, Ty::Pointer(_));
        if direction.comes_out() && !pointed {
            return self.stay(format!("`{name}` comes out and is no pointer, so nobody gets it"));
        }
        let typed = self.declared(&ty, attributes, &member.declarator, Role::Parameter)?;
        Some(Parameter { direction, field: Field { name: Name::from(name), shape: typed.shape } })
    }

    /// What a method returns beside its parameters. A void for methods whose HRESULT is no value.
    fn result(&mut self, method: &Method, style: Style) -> Option<Shape> {
        let spec = &method.returns;
        // `SCODE` is its older name.
        let hresult = is_named(spec, "HRESULT") || is_named(spec, "SCODE");
        let pointers = method.declarator.pointers > 0;
        if !pointers && matches!(spec.kind, TypeKind::Void) {
            if style == Style::Object {
                return self.stay(NOT_HRESULT);
            }
            return Some(Shape::Void);
        }
        match style {
            Style::Object if hresult && !pointers => Some(Shape::Void),
            Style::Object => self.stay(NOT_HRESULT),
            Style::Dispatch if hresult && !pointers => Some(Shape::Void),
            _ => {
                let ty = self.spec(spec, &method.declarator.ident.name, &method.attributes, None)?;
                let typed = self.declared(&ty, &method.attributes, &method.declarator, Role::Inner)?;
                Some(typed.shape)
            }
        }
    }

    /// Counts operations and parameters; nothing where there are too many. The message comes once.
    pub(super) fn room(&mut self, more: usize, span: Span) -> Option<()> {
        let before = self.inherited;
        self.inherited = before.saturating_add(more);
        if self.inherited <= crate::omg::limits::INHERITED {
            return Some(());
        }
        if before <= crate::omg::limits::INHERITED {
            self.problem(span, "the interfaces have too many operations, the inherited ones counted in each");
        }
        None
    }
}

/// What a method does for a property, by its attributes.
fn access(attributes: &[Attribute]) -> Option<Access> {
    if has(attributes, "propget") {
        Some(Access::Get)
    } else if has(attributes, "propput") {
        Some(Access::Put)
    } else if has(attributes, "propputref") {
        Some(Access::PutReference)
    } else {
        None
    }
}
