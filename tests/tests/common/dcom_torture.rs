//! What Samba's `smbtorture` looks for at a server of plain DCE/RPC: the procedures of `torture.midl`.

use contract::{
    ATTRIBUTES, AnyEnum, BasicInformation, BothEnums, COUNTED, DirectorySetup, Echo, GUID, INFO, INFO1,
    INFO2, INFO3, INFO4, INFO5, INFO6, INFO7, LEVEL, LocalSecurity, MachineRole, OperationState,
    PolicyHandle, RoleInformation, SURROUNDING, ShortEnum, UpgradeStatus,
};
use everywire::{Bytes, Failure, Initiator, Kind, Node};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[allow(unreachable_pub, missing_docs, clippy::pedantic, clippy::type_complexity)]
pub mod contract {
    everywire::include_contract!("torture");
}

/// Serves all three interfaces.
pub fn serve(node: &Node) {
    node.export::<dyn LocalSecurity>("security", Arc::new(Security::default()));
    node.export::<dyn DirectorySetup>("setup", Arc::new(Setup));
    node.export::<dyn Echo>("echo", Arc::new(Echoes));
}

const NOBODY: GUID = GUID { data1: 0, data2: 0, data3: 0, data4: [0; 8] };

/// Context handles of policies that are open.
#[derive(Default)]
struct Security {
    open: Mutex<(u32, BTreeSet<u32>)>,
}

macro_rules! unused {
    ($($name:ident)*) => { $(fn $name(&self) -> Result<(), Failure> {
        Err(Failure::new(Kind::NoOperation, Initiator::User, "it is not used"))
    })* };
}

impl LocalSecurity for Security {
    fn close(&self, handle: &PolicyHandle) -> Result<(PolicyHandle, u32), Failure> {
        let mut open = self.open.lock().expect("no panic");
        if !open.1.remove(&handle.uuid.data1) {
            // nca_s_fault_context_mismatch
            let unknown = Failure::new(Kind::BadReference, Initiator::User, "there is no such handle");
            return Err(unknown.with_code("0x1c00001a"));
        }
        Ok((PolicyHandle { attributes: 0, uuid: NOBODY }, 0))
    }

    fn open_policy2(
        &self,
        _: &Option<String>,
        attributes: &ATTRIBUTES,
        _: u32,
    ) -> Result<(PolicyHandle, u32), Failure> {
        let quality = attributes.quality.as_ref().map(|quality| (quality.impersonation, quality.tracking));
        assert_eq!(quality, Some((2, 1)), "smbtorture asks so");
        let mut open = self.open.lock().expect("no panic");
        open.0 += 1;
        let number = open.0;
        open.1.insert(number);
        Ok((PolicyHandle { attributes: 0, uuid: GUID { data1: number, ..NOBODY } }, 0))
    }

    fn get_user_name(
        &self,
        _: &Option<String>,
        account: &Option<COUNTED>,
        authority: &Option<Option<COUNTED>>,
    ) -> Result<(Option<COUNTED>, Option<Option<COUNTED>>, u32), Failure> {
        assert!(account.is_none() && *authority == Some(None), "smbtorture asks for both");
        Ok((Some(counted(super::dcom::USER)), Some(Some(counted(super::dcom::DOMAIN))), 0))
    }

    unused! {
        unused1 unused2 unused3 unused4 unused5 unused6 unused7 unused8 unused9 unused10 unused11 unused12 unused13
        unused14 unused15 unused16 unused17 unused18 unused19 unused20 unused21 unused22 unused23 unused24 unused25
        unused26 unused27 unused28 unused29 unused30 unused31 unused32 unused33 unused34 unused35 unused36 unused37
        unused38 unused39 unused40 unused41 unused42 unused43
    }
}

fn counted(text: &str) -> COUNTED {
    let units: Vec<char> = text.chars().collect();
    let length = u16::try_from(units.len() * 2).expect("a short name");
    COUNTED { length, size: length, text: Some(units) }
}

struct Setup;

impl DirectorySetup for Setup {
    fn get_primary_domain_information(
        &self,
        level: LEVEL,
    ) -> Result<(Option<RoleInformation>, u32), Failure> {
        let information = match level {
            LEVEL::Basic => RoleInformation::Basic(BasicInformation {
                role: MachineRole::StandaloneServer,
                flags: 0,
                domain: Some(super::dcom::DOMAIN.to_owned()),
                dns: None,
                forest: None,
                id: NOBODY,
            }),
            LEVEL::Upgrade => RoleInformation::Upgrade(UpgradeStatus {
                upgrading: 0,
                previous: MachineRole::StandaloneWorkstation,
            }),
            LEVEL::Operation => RoleInformation::Operation(OperationState::Idle),
            // ERROR_INVALID_PARAMETER.
            _ => return Ok((None, 87)),
        };
        Ok((Some(information), 0))
    }
}

struct Echoes;

impl Echo for Echoes {
    fn add_one(&self, number: u32) -> Result<u32, Failure> {
        Ok(number.wrapping_add(1))
    }

    fn echo_data(&self, data: Bytes) -> Result<Bytes, Failure> {
        Ok(data)
    }

    fn sink_data(&self, data: Bytes) -> Result<(), Failure> {
        let counted = (0..=u8::MAX).cycle().skip(1).take(data.len());
        assert!(data.iter().copied().eq(counted), "smbtorture counts upwards from one");
        Ok(())
    }

    fn source_data(&self, len: u32) -> Result<Bytes, Failure> {
        Ok((0..=u8::MAX).cycle().take(len as usize).collect())
    }

    fn test_call(&self, text: &str) -> Result<Option<String>, Failure> {
        Ok(Some(text.to_owned()))
    }

    fn test_call2(&self, level: u16) -> Result<(INFO, u32), Failure> {
        let info = match level {
            1 => INFO::Info1(INFO1 { v: 10 }),
            2 => INFO::Info2(INFO2 { v: 20 }),
            3 => INFO::Info3(INFO3 { v: 30 }),
            4 => INFO::Info4(INFO4 { v: 40 }),
            5 => INFO::Info5(INFO5 { v1: 50, v2: 60 }),
            6 => INFO::Info6(INFO6 { v1: 70, info1: INFO1 { v: 80 } }),
            7 => INFO::Info7(INFO7 { v1: 80, info4: INFO4 { v: 90 } }),
            _ => INFO::Empty(level),
        };
        Ok((info, 0))
    }

    fn test_sleep(&self, seconds: u32) -> Result<u32, Failure> {
        // Three calls at once, of which smbtorture wants the shortest answered first.
        std::thread::sleep(Duration::from_secs(seconds.into()));
        Ok(seconds)
    }

    fn test_enum(
        &self,
        first: ShortEnum,
        second: &BothEnums,
        third: &AnyEnum,
    ) -> Result<(ShortEnum, BothEnums, AnyEnum), Failure> {
        Ok((first, second.clone(), third.clone()))
    }

    fn test_surrounding(&self, data: &SURROUNDING) -> Result<SURROUNDING, Failure> {
        Ok(SURROUNDING { surrounding: vec![0; data.surrounding.len() * 2] })
    }

    fn test_double_pointer(&self, data: &Option<Option<u16>>) -> Result<u16, Failure> {
        Ok(data.flatten().unwrap_or(0))
    }
}
