//! The macros that connect a trait of a contract to its stubs and skeletons.
//!
//! `blocking!` takes what a blocking trait is: its description, where the operations of its bases stand among its own, its signals, and a
//! line for each operation that the trait itself declares. `asynchronous!` takes the same for the asynchronous trait, and `faces!` for both.
//!
//! ```text
//! ew::faces! {
//!     Source / SourceAsync: describe::SOURCE, describe::SOURCE_OPERATIONS, 2;     2: the number of its first own operation
//!     from Base / BaseAsync 0..2;                 operations 0 and 1 are those that `Base` declares
//!     emits SourceFired;
//!     tells describe::constants;                  where the contract has constants
//!     calls describe::SINK;                       an interface of listeners that it calls back
//!     0 advise(s => Sink / SinkAsync) -> (u32,);  a typed reference comes, one value goes
//!     1 find(name as &str, at: i32) => Sink / SinkAsync | FindError;
//!                                                 by reference and by value; a typed reference goes; an error type
//!     oneway 2 hello();                           the caller waits for nothing
//!     checked_oneway 3 tell(..) { .. }            some of what travels is not what people see, such as counts
//!     checked 4 read(..) -> (a, b) (A, B) { .. }  the same, with results: their names and their types
//! }
//! ```
//!
//! The lines of a `checked` operation name all that travels. `send`: what a stub sends, and statements before. `read`: what a skeleton
//! reads, and statements after. `receive`: what a stub reads, and statements after, for which the object has a name. `answer`: what a
//! skeleton answers, and statements before.
//!
//! Both macros expand to what a reader would expect: `impl Remote` for the trait, `impl Trait for Stub<I>` with a call for each operation,
//! and a `match` over the numbers of the operations. Variables of the macros cannot be seen from the lines, and the other way round.

/// What both macros make of a trait: its way to the untyped world, the numbers of operations, signals.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_trait {
    ($trait:ident: $described:path, $operations:path, $first:literal;
        $(from $($base:ident)::+ $begin:literal;)*
        $(emits $($emitted:ident)::+;)*
        $(tells $constants:path;)?
        $(calls $listener:path;)*
    ) => {
        impl $crate::Remote for dyn $trait {
            fn interface() -> &'static $crate::Interface {
                &$described
            }

            $(fn constants() -> ::std::vec::Vec<$crate::Constant> {
                $constants()
            })?

            fn listeners() -> ::std::vec::Vec<$crate::Hold<$crate::Interface>> {
                ::std::vec![$($crate::Hold::Static(&$listener)),*]
            }

            fn stub(object: $crate::Object) -> ::std::sync::Arc<Self> {
                ::std::sync::Arc::new($crate::generated::Stub::<Self>::new(object))
            }

            fn skeleton(servant: ::std::sync::Arc<Self>) -> ::std::sync::Arc<dyn $crate::Servant> {
                ::std::sync::Arc::new($crate::generated::Skeleton(servant))
            }

            fn as_type(servant: &::std::sync::Arc<Self>, id: &str) -> ::std::option::Option<$crate::object::TypedServant> {
                if <Self as $crate::Remote>::interface().id == id {
                    return ::std::option::Option::Some(::std::sync::Arc::new(servant.clone()));
                }
                $(if <dyn $($base)::+ as $crate::Remote>::interface().id == id {
                    let base: ::std::sync::Arc<dyn $($base)::+> = servant.clone();
                    return ::std::option::Option::Some(::std::sync::Arc::new(base));
                })*
                ::std::option::Option::None
            }
        }

        impl $crate::generated::Inherits<dyn $trait> for dyn $trait {
            #[inline]
            fn operation(own: usize) -> &'static $crate::Operation {
                &$operations[own + $first]
            }
        }

        $(impl $crate::generated::Inherits<dyn $($base)::+> for dyn $trait {
            #[inline]
            fn operation(own: usize) -> &'static $crate::Operation {
                &$operations[own + $begin]
            }
        })*

        $(impl $crate::Emits<$($emitted)::+> for dyn $trait {})*
    };
}

/// The type as which a skeleton reads a parameter.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_read {
    (: $own:ty) => { $own };
    (as & $lent:ty) => { <$lent as $crate::generated::Lent>::Read<'_> };
    (=> $($base:ident)::+) => { <dyn $($base)::+ as $crate::generated::Untyped>::Reference };
}

/// What a skeleton gives its servant of a parameter that was read.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_given {
    ($request:ident, $read:ident: $own:ty) => { $crate::generated::own::<$own>($read) };
    ($request:ident, $read:ident as & $lent:ty) => { $crate::generated::lend::<$lent>(&$read) };
    ($request:ident, $read:ident => $($base:ident)::+) => { $request.narrow::<dyn $($base)::+>($read)? };
}

/// A blocking trait.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_blocking {
    ($trait:ident $(/ $face:ident)?: $described:path, $operations:path, $first:literal;
        $(from $($base:ident)::+ $(/ $($base_face:ident)::+)? $begin:literal .. $end:literal;)*
        $(emits $($emitted:ident)::+;)*
        $(tells $constants:path;)?
        $(calls $listener:path;)*
        $($number:literal $method:ident(
            $($p:ident $(: $own:ty)? $(as & $lent:ty)?
                $(=> $($pb:ident)::+ $(/ $($pa:ident)::+)?)?),* $(,)?
        ) $(-> $r:ty)? $(=> $($rb:ident)::+ $(/ $($ra:ident)::+)?)? $(| $error:ty)?;)*
        $(oneway $o_number:literal $o_method:ident(
            $($o_p:ident $(: $o_own:ty)? $(as & $o_lent:ty)?
                $(=> $($o_pb:ident)::+ $(/ $($o_pa:ident)::+)?)?),* $(,)?
        );)*
        $(checked_oneway $n_number:literal $n_method:ident(
            $($n_p:ident $(: $n_own:ty)? $(as & $n_lent:ty)?
                $(=> $($n_pb:ident)::+ $(/ $($n_pa:ident)::+)?)?),* $(,)?
        ) {
            send ($($n_sent:tt)*) { $($n_send:tt)* }
            read ($($n_read:tt)*) { $($n_after:tt)* }
        })*
        $(checked $c_number:literal $c_method:ident(
            $($c_p:ident $(: $c_own:ty)? $(as & $c_lent:ty)?
                $(=> $($c_pb:ident)::+ $(/ $($c_pa:ident)::+)?)?),* $(,)?
        ) -> ($($c_v:ident),*) $c_r:ty $(=> $c_ra:ty)? $(| $c_error:ty)? {
            send ($($sent:tt)*) { $($send:tt)* }
            read ($($read:tt)*) { $($after:tt)* }
            receive $object:ident ($($received:tt)*) { $($receive:tt)* }
            answer ($($answered:tt)*) { $($answer:tt)* }
        })*
    ) => {
        $crate::__generated_trait! {
            $trait: $described, $operations, $first;
            $(from $($base)::+ $begin;)*
            $(emits $($emitted)::+;)*
            $(tells $constants;)?
            $(calls $listener;)*
        }

        impl<__I> $trait for $crate::generated::Stub<__I>
        where
            __I: ?::core::marker::Sized
                + $crate::generated::Inherits<dyn $trait>
                $(+ $crate::generated::Inherits<dyn $($base)::+>)*,
        {
            $(fn $method(
                &self,
                $($p: $($own)? $(&$lent)? $(::std::option::Option<$crate::Ref<dyn $($pb)::+>>)?),*
            ) -> $crate::generated::Ends<
                $crate::generated::Yield<($($r)? $($crate::generated::Narrow<dyn $($rb)::+>)?)>
                $(, $error)?
            > {
                let operation = <__I as $crate::generated::Inherits<dyn $trait>>::operation($number);
                let read = self.object.call(operation, ($($p,)*));
                <($($r)? $($crate::generated::Narrow<dyn $($rb)::+>)?) as $crate::generated::Results>::receive(
                    read,
                    &self.object,
                )
            })*

            $(fn $o_method(
                &self,
                $($o_p: $($o_own)? $(&$o_lent)? $(::std::option::Option<$crate::Ref<dyn $($o_pb)::+>>)?),*
            ) -> $crate::generated::Ends<()> {
                let operation = <__I as $crate::generated::Inherits<dyn $trait>>::operation($o_number);
                self.object.notify(operation, ($($o_p,)*))
            })*

            $(fn $n_method(
                &self,
                $($n_p: $($n_own)? $(&$n_lent)? $(::std::option::Option<$crate::Ref<dyn $($n_pb)::+>>)?),*
            ) -> $crate::generated::Ends<()> {
                $($n_send)*
                let operation = <__I as $crate::generated::Inherits<dyn $trait>>::operation($n_number);
                self.object.notify(operation, ($($n_sent)*))
            })*

            $(fn $c_method(
                &self,
                $($c_p: $($c_own)? $(&$c_lent)? $(::std::option::Option<$crate::Ref<dyn $($c_pb)::+>>)?),*
            ) -> $crate::generated::Ends<
                <$c_r as $crate::generated::Coded>::Value
                $(, $c_error)?
            > {
                $($send)*
                let $object = &self.object;
                let operation = <__I as $crate::generated::Inherits<dyn $trait>>::operation($c_number);
                let read: $crate::generated::Ends<_ $(, $c_error)?> =
                    $object.call(operation, ($($sent)*));
                let (($($received)*), code) =
                    <$c_r as $crate::generated::Coded>::open(read?);
                $($receive)*
                let yielded = <$c_r as $crate::generated::Coded>::value(($($c_v,)*), code);
                ::std::result::Result::Ok(yielded)
            })*
        }

        impl $crate::generated::Answers for dyn $trait {
            #[inline]
            fn serve(&self, request: &mut $crate::Request, own: usize) -> $crate::generated::Ends<()> {
                match own {
                    $($number => {
                        let ($($p,)*): ($(
                            $crate::__generated_read!($(: $own)? $(as & $lent)? $(=> $($pb)::+)?),
                        )*) = request.arguments()?;
                        let result = <Self as $trait>::$method(
                            self,
                            $($crate::__generated_given!(request, $p $(: $own)? $(as & $lent)? $(=> $($pb)::+)?)),*
                        );
                        request.reply(
                            <($($r)? $($crate::generated::Narrow<dyn $($rb)::+>)?) as $crate::generated::Results>::answer(result),
                        )
                    })*
                    $($o_number => {
                        let ($($o_p,)*): ($(
                            $crate::__generated_read!($(: $o_own)? $(as & $o_lent)? $(=> $($o_pb)::+)?),
                        )*) = request.arguments()?;
                        let result = <Self as $trait>::$o_method(
                            self,
                            $($crate::__generated_given!(request, $o_p $(: $o_own)? $(as & $o_lent)? $(=> $($o_pb)::+)?)),*
                        );
                        request.reply(result)
                    })*
                    $($n_number => {
                        let ($($n_read)*) = request.arguments()?;
                        let ($($n_p,)*): ($(
                            $crate::__generated_read!($(: $n_own)? $(as & $n_lent)? $(=> $($n_pb)::+)?),
                        )*) = ($($n_p,)*);
                        $($n_after)*
                        let result = <Self as $trait>::$n_method(
                            self,
                            $($crate::__generated_given!(request, $n_p $(: $n_own)? $(as & $n_lent)? $(=> $($n_pb)::+)?)),*
                        );
                        request.reply(result)
                    })*
                    $($c_number => {
                        let ($($read)*) = request.arguments()?;
                        let ($($c_p,)*): ($(
                            $crate::__generated_read!($(: $c_own)? $(as & $c_lent)? $(=> $($c_pb)::+)?),
                        )*) = ($($c_p,)*);
                        $($after)*
                        match <Self as $trait>::$c_method(
                            self,
                            $($crate::__generated_given!(request, $c_p $(: $c_own)? $(as & $c_lent)? $(=> $($c_pb)::+)?)),*
                        ) {
                            ::std::result::Result::Ok(value) => {
                                let (($($c_v,)*), code) =
                                    <$c_r as $crate::generated::Coded>::split(value);
                                $($answer)*
                                let answered =
                                    <$c_r as $crate::generated::Coded>::close(($($answered)*), code);
                                request.reply::<_, $crate::Failure>(::std::result::Result::Ok(answered))
                            }
                            ::std::result::Result::Err(error) => {
                                request.reply::<(), _>(::std::result::Result::Err(error))
                            }
                        }
                    })*
                    _ => ::std::result::Result::Err($crate::object::no_operation(&$described)),
                }
            }
        }

        impl $crate::generated::Serve for dyn $trait {
            fn dispatch(servant: &::std::sync::Arc<Self>, request: $crate::Request) {
                request.run(|request| match request.index() {
                    $(index if ($begin..$end).contains(&index) => {
                        let servant: &dyn $($base)::+ = &**servant;
                        $crate::generated::Answers::serve(servant, request, index - $begin)
                    })*
                    index => $crate::generated::Answers::serve(&**servant, request, index.wrapping_sub($first)),
                });
            }
        }
    };
}

/// An asynchronous trait.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_asynchronous {
    ($trait:ident / $face:ident: $described:path, $operations:path, $first:literal;
        $(from $($base:ident)::+ / $($base_face:ident)::+ $begin:literal .. $end:literal;)*
        $(emits $($emitted:ident)::+;)*
        $(tells $constants:path;)?
        $(calls $listener:path;)*
        $($number:literal $method:ident(
            $($p:ident $(: $own:ty)? $(as & $lent:ty)?
                $(=> $($pb:ident)::+ / $($pa:ident)::+)?),* $(,)?
        ) $(-> $r:ty)? $(=> $($rb:ident)::+ / $($ra:ident)::+)? $(| $error:ty)?;)*
        $(oneway $o_number:literal $o_method:ident(
            $($o_p:ident $(: $o_own:ty)? $(as & $o_lent:ty)?
                $(=> $($o_pb:ident)::+ / $($o_pa:ident)::+)?),* $(,)?
        );)*
        $(checked_oneway $n_number:literal $n_method:ident(
            $($n_p:ident $(: $n_own:ty)? $(as & $n_lent:ty)?
                $(=> $($n_pb:ident)::+ / $($n_pa:ident)::+)?),* $(,)?
        ) {
            send ($($n_sent:tt)*) { $($n_send:tt)* }
            read ($($n_read:tt)*) { $($n_after:tt)* }
        })*
        $(checked $c_number:literal $c_method:ident(
            $($c_p:ident $(: $c_own:ty)? $(as & $c_lent:ty)?
                $(=> $($c_pb:ident)::+ / $($c_pa:ident)::+)?),* $(,)?
        ) -> ($($c_v:ident),*) $c_r:ty $(=> $c_ra:ty)? $(| $c_error:ty)? {
            send ($($sent:tt)*) { $($send:tt)* }
            read ($($read:tt)*) { $($after:tt)* }
            receive $object:ident ($($received:tt)*) { $($receive:tt)* }
            answer ($($answered:tt)*) { $($answer:tt)* }
        })*
    ) => {
        $crate::__generated_trait! {
            $face: $described, $operations, $first;
            $(from $($base_face)::+ $begin;)*
            $(emits $($emitted)::+;)*
            $(tells $constants;)?
            $(calls $listener;)*
        }

        #[::everywire::async_trait]
        impl<__I> $face for $crate::generated::Stub<__I>
        where
            __I: ?::core::marker::Sized
                + $crate::generated::Inherits<dyn $face>
                $(+ $crate::generated::Inherits<dyn $($base_face)::+>)*,
        {
            $(async fn $method(
                &self,
                $($p: $($own)? $(&$lent)? $(::std::option::Option<$crate::Ref<dyn $($pa)::+>>)?),*
            ) -> $crate::generated::Ends<
                $crate::generated::Yield<($($r)? $($crate::generated::Narrow<dyn $($ra)::+>)?)>
                $(, $error)?
            > {
                let operation = <__I as $crate::generated::Inherits<dyn $face>>::operation($number);
                let read = self.object.call_async(operation, ($($p,)*)).await;
                <($($r)? $($crate::generated::Narrow<dyn $($ra)::+>)?) as $crate::generated::Results>::receive(
                    read,
                    &self.object,
                )
            })*

            $(async fn $o_method(
                &self,
                $($o_p: $($o_own)? $(&$o_lent)? $(::std::option::Option<$crate::Ref<dyn $($o_pa)::+>>)?),*
            ) -> $crate::generated::Ends<()> {
                let operation = <__I as $crate::generated::Inherits<dyn $face>>::operation($o_number);
                self.object.notify(operation, ($($o_p,)*))
            })*

            $(async fn $n_method(
                &self,
                $($n_p: $($n_own)? $(&$n_lent)? $(::std::option::Option<$crate::Ref<dyn $($n_pa)::+>>)?),*
            ) -> $crate::generated::Ends<()> {
                $($n_send)*
                let operation = <__I as $crate::generated::Inherits<dyn $face>>::operation($n_number);
                self.object.notify(operation, ($($n_sent)*))
            })*

            $(async fn $c_method(
                &self,
                $($c_p: $($c_own)? $(&$c_lent)? $(::std::option::Option<$crate::Ref<dyn $($c_pa)::+>>)?),*
            ) -> $crate::generated::Ends<
                <$crate::generated::Asynchronous<$c_r $(, $c_ra)?> as $crate::generated::Coded>::Value
                $(, $c_error)?
            > {
                $($send)*
                let $object = &self.object;
                let operation = <__I as $crate::generated::Inherits<dyn $face>>::operation($c_number);
                let read: $crate::generated::Ends<_ $(, $c_error)?> =
                    $object.call_async(operation, ($($sent)*)).await;
                let (($($received)*), code) =
                    <$crate::generated::Asynchronous<$c_r $(, $c_ra)?> as $crate::generated::Coded>::open(read?);
                $($receive)*
                let yielded =
                    <$crate::generated::Asynchronous<$c_r $(, $c_ra)?> as $crate::generated::Coded>::value(($($c_v,)*), code);
                ::std::result::Result::Ok(yielded)
            })*
        }

        impl $crate::generated::AnswersAsync for dyn $face {
            async fn serve(&self, request: &mut $crate::Request, own: usize) -> $crate::generated::Ends<()> {
                match own {
                    $($number => {
                        let ($($p,)*): ($(
                            $crate::__generated_read!($(: $own)? $(as & $lent)? $(=> $($pa)::+)?),
                        )*) = request.arguments()?;
                        let result = <Self as $face>::$method(
                            self,
                            $($crate::__generated_given!(request, $p $(: $own)? $(as & $lent)? $(=> $($pa)::+)?)),*
                        ).await;
                        request.reply(
                            <($($r)? $($crate::generated::Narrow<dyn $($ra)::+>)?) as $crate::generated::Results>::answer(result),
                        )
                    })*
                    $($o_number => {
                        let ($($o_p,)*): ($(
                            $crate::__generated_read!($(: $o_own)? $(as & $o_lent)? $(=> $($o_pa)::+)?),
                        )*) = request.arguments()?;
                        let result = <Self as $face>::$o_method(
                            self,
                            $($crate::__generated_given!(request, $o_p $(: $o_own)? $(as & $o_lent)? $(=> $($o_pa)::+)?)),*
                        ).await;
                        request.reply(result)
                    })*
                    $($n_number => {
                        let ($($n_read)*) = request.arguments()?;
                        let ($($n_p,)*): ($(
                            $crate::__generated_read!($(: $n_own)? $(as & $n_lent)? $(=> $($n_pa)::+)?),
                        )*) = ($($n_p,)*);
                        $($n_after)*
                        let result = <Self as $face>::$n_method(
                            self,
                            $($crate::__generated_given!(request, $n_p $(: $n_own)? $(as & $n_lent)? $(=> $($n_pa)::+)?)),*
                        ).await;
                        request.reply(result)
                    })*
                    $($c_number => {
                        let ($($read)*) = request.arguments()?;
                        let ($($c_p,)*): ($(
                            $crate::__generated_read!($(: $c_own)? $(as & $c_lent)? $(=> $($c_pa)::+)?),
                        )*) = ($($c_p,)*);
                        $($after)*
                        match <Self as $face>::$c_method(
                            self,
                            $($crate::__generated_given!(request, $c_p $(: $c_own)? $(as & $c_lent)? $(=> $($c_pa)::+)?)),*
                        ).await {
                            ::std::result::Result::Ok(value) => {
                                let (($($c_v,)*), code) =
                                    <$crate::generated::Asynchronous<$c_r $(, $c_ra)?>
                                        as $crate::generated::Coded>::split(value);
                                $($answer)*
                                let answered =
                                    <$crate::generated::Asynchronous<$c_r $(, $c_ra)?>
                                        as $crate::generated::Coded>::close(($($answered)*), code);
                                request.reply::<_, $crate::Failure>(::std::result::Result::Ok(answered))
                            }
                            ::std::result::Result::Err(error) => {
                                request.reply::<(), _>(::std::result::Result::Err(error))
                            }
                        }
                    })*
                    _ => ::std::result::Result::Err($crate::object::no_operation(&$described)),
                }
            }
        }

        impl $crate::generated::Serve for dyn $face {
            fn dispatch(servant: &::std::sync::Arc<Self>, request: $crate::Request) {
                let servant = servant.clone();
                request.spawn(|mut request| async move {
                    let result = match request.index() {
                        $(index if ($begin..$end).contains(&index) => {
                            let servant: &dyn $($base_face)::+ = &*servant;
                            $crate::generated::AnswersAsync::serve(servant, &mut request, index - $begin).await
                        })*
                        index => {
                            let own = index.wrapping_sub($first);
                            $crate::generated::AnswersAsync::serve(&*servant, &mut request, own).await
                        }
                    };
                    request.finish(result);
                });
            }
        }
    };
}

/// Both traits of an interface.
#[doc(hidden)]
#[macro_export]
macro_rules! __generated_faces {
    ($($lines:tt)*) => {
        $crate::__generated_blocking! { $($lines)* }
        $crate::__generated_asynchronous! { $($lines)* }
    };
}

pub use crate::{
    __generated_asynchronous as asynchronous, __generated_blocking as blocking, __generated_faces as faces,
};
