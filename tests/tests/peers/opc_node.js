// An OPC client made of node-opc-da: `node --openssl-legacy-provider opc_node.js HOST DOMAIN USER PASSWORD CLSID`, with the library
// on $NODE_PATH. It ends with a line `ok`.
//
// The library has neither a list of servers nor callbacks. It reads the results of GetState and SetState wrongly, RemoveGroup fails
// before it calls, and its write calls Read; so groups are left to the end of the client, and values are written by a call that is
// put together here.
'use strict';

const assert = require('assert');
const { OPCServer, createServer, constants, dcom } = require('node-opc-da');
const { CallBuilder, ComArray, ComValue, Flags, Pointer, Types } = dcom;

const CACHE = 1;
const DEVICE = 2;
const UNKNOWN_ITEM = 0xc0040007;

const unsigned = (number) => number >>> 0;

async function browse(server) {
  const browser = await server.getBrowser();
  console.log(`flat ${JSON.stringify((await browser.browseAllFlat()).sort())}`);
  const tree = await browser.browseAllTree();
  console.log(`tree ${JSON.stringify(tree, Object.keys(tree).concat(Object.keys(tree.Tank)).sort())}`);
  await browser.end();
}

async function write(group, handles, values) {
  const io = await group.getSyncIO();
  const call = new CallBuilder(true);
  call.setOpnum(1);
  call.addInParamAsInt(handles.length, Flags.FLAG_NULL);
  const numbers = handles.map((handle) => new ComValue(handle, Types.INTEGER));
  call.addInParamAsArray(new ComArray(new ComValue(numbers, Types.INTEGER), true), Flags.FLAG_NULL);
  const variants = values.map(([value, type]) => new ComValue(new dcom.Variant.Variant(new ComValue(value, type)), Types.VARIANT));
  call.addInParamAsArray(new ComArray(new ComValue(variants, Types.VARIANT), true), Flags.FLAG_NULL);
  const codes = new ComArray(new ComValue(null, Types.INTEGER), null, 1, true);
  call.addOutParamAsObject(new ComValue(new Pointer(new ComValue(codes, Types.COMARRAY)), Types.POINTER), Flags.FLAG_NULL);
  const done = await io._comObj.call(call);
  const found = done.getResults()[0].getValue().getReferent().getArrayInstance();
  return found.map((code) => unsigned(code.getValue()));
}

async function values(server) {
  const group = await server.addGroup('node', { updateRate: 100, clientHandle: 7, timeBias: 0, deadband: 0 });
  const manager = await group.getItemManager();
  const wanted = ['Tank.Level', 'No.Such', 'Tank.Setpoint', 'Name'];
  const items = wanted.map((itemID, index) => ({ itemID, clientHandle: index + 1 }));
  const checked = await manager.validate(items);
  assert.deepStrictEqual(checked.map(([, item]) => unsigned(item.errorCode)), [0, UNKNOWN_ITEM, 0, 0]);
  const added = await manager.add(items);
  assert.deepStrictEqual(added.map(([code]) => unsigned(code)), [0, UNKNOWN_ITEM, 0, 0]);
  assert.deepStrictEqual(added.map(([, item]) => item.cannonicalDataType), [4, 0, 2, 8]);
  const handles = added.filter(([code]) => code === 0).map(([, item]) => item.serverHandle);
  const io = await group.getSyncIO();
  for (const source of [CACHE, DEVICE]) {
    const read = await io.read(source, handles);
    assert.deepStrictEqual(read.map((one) => one.value), [50, 10, 'tank one']);
    assert.deepStrictEqual(read.map((one) => one.quality), [192, 192, 192]);
    assert.deepStrictEqual(read.map((one) => one.clientHandle), [1, 3, 4]);
    read.forEach((one) => assert.ok(Math.abs(one.timestamp.getTime() - Date.now()) < 3600 * 1000));
  }
  const codes = await write(group, handles.slice(0, 2), [[1.5, Types.FLOAT], [222, Types.INTEGER]]);
  assert.deepStrictEqual(codes, [0xc0040006, 0]);
  assert.strictEqual((await io.read(DEVICE, [handles[1]]))[0].value, 222);
  await manager.setClientHandles(handles, [11, 13, 14]);
  assert.deepStrictEqual((await io.read(CACHE, handles)).map((one) => one.clientHandle), [11, 13, 14]);
  await manager.setActiveState(false, handles);
  // What is not active is out of service in the cache.
  assert.deepStrictEqual((await io.read(CACHE, handles)).map((one) => one.quality), [28, 28, 28]);
  await manager.remove(handles);
  console.log('read and written');
  const groups = await server.getGroups(constants.opc && constants.opc.enumScope ? constants.opc.enumScope.ALL : 6);
  assert.deepStrictEqual(groups, ['node']);
  await group.setName('renamed');
  assert.deepStrictEqual(await server.getGroups(6), ['renamed']);
  await group.end();
}

async function main([host, domain, user, password, clsid]) {
  const made = await createServer(host, domain, user, password, clsid, {});
  const server = made.opcServer;
  assert.ok(server instanceof OPCServer);
  const status = await server.getStatus();
  assert.deepStrictEqual([status.serverState, status.vendorInfo, status.groupCount], [1, 'Everywire', 0]);
  await browse(server);
  await values(server);
  assert.strictEqual((await server.getStatus()).groupCount, 1);
  await server.end();
}

const late = setTimeout(() => {
  console.error('nothing comes');
  process.exit(1);
}, 300000);

main(process.argv.slice(2)).then(
  () => {
    clearTimeout(late);
    console.log('ok');
    process.exit(0);
  },
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
