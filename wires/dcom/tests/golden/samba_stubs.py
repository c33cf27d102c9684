"""Stubs as Samba's NDR writes them: name, byte order, hexadecimal."""
from samba.ndr import ndr_pack_in, ndr_pack_out, ndr_pack
from samba.dcerpc import lsa, misc, samr, srvsvc, winreg, security


def rows():
    call = srvsvc.NetSrvSetInfo()
    call.in_server_unc, call.in_level, call.in_parm_error = "\\\\host", 101, 7
    info = srvsvc.NetSrvInfo101()
    info.platform_id, info.server_name = srvsvc.PLATFORM_ID_NT, "box"
    info.version_major, info.version_minor, info.server_type, info.comment = 5, 2, 0x11, "a b"
    call.in_info = info
    yield "srvsvc.NetSrvSetInfo.in", call, ndr_pack_in

    handle = misc.policy_handle()
    handle.handle_type, handle.uuid = 3, misc.GUID("01234567-89ab-cdef-0123-456789abcdef")

    call = winreg.EnumValue()
    call.in_handle, call.in_enum_index = handle, 2
    name = winreg.ValNameBuf()
    name.name, name.size, name.length = "", 2, 2
    call.in_name, call.in_type, call.in_value = name, misc.REG_BINARY, [1, 2, 3, 4]
    call.in_size, call.in_length = 4, 4
    yield "winreg.EnumValue.in", call, ndr_pack_in

    call = samr.SetUserInfo2()
    call.in_user_handle, call.in_level = handle, 17
    info = samr.UserInfo17()
    info.acct_expiry = 0x0102030405060708
    call.in_info = info
    yield "samr.SetUserInfo2.in.17", call, ndr_pack_in

    call = samr.SetUserInfo2()
    call.in_user_handle, call.in_level = handle, 6
    info = samr.UserInfo6()
    info.account_name, info.full_name = lsa.String(), lsa.String()
    info.account_name.string, info.full_name.string = "ann", "Ann B"
    call.in_info = info
    yield "samr.SetUserInfo2.in.6", call, ndr_pack_in

    call = lsa.LookupNames()
    call.in_handle, call.in_num_names = handle, 2
    names = [lsa.String(), lsa.String()]
    names[0].string, names[1].string = "one", "two2"
    call.in_names, call.in_level, call.in_count = names, lsa.LSA_LOOKUP_NAMES_ALL, 9
    sids = lsa.TransSidArray()
    sid = lsa.TranslatedSid()
    sid.sid_type, sid.rid, sid.sid_index = lsa.SID_NAME_USER, 500, 1
    sids.count, sids.sids = 2, [sid, sid]
    call.in_sids = sids
    yield "lsa.LookupNames.in", call, ndr_pack_in


for name, value, pack in rows():
    for big in (False, True):
        print(name, "big" if big else "little", pack(value, bigendian=big).hex(), sep="\t")
