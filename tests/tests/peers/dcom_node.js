// A DCOM client made of node-dcom: `node --openssl-legacy-provider dcom_node.js HOST DOMAIN USER PASSWORD`, with the library on
// $NODE_PATH. It ends with a line `ok`.
'use strict';

const assert = require('assert');
const { CallBuilder, Clsid, ComArray, ComServer, ComString, ComValue, Flags, Session, Types } = require('node-dcom');

const CLASS = '6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A10';
const PANTRY = '6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A01';
const SCALES = '6F3A1C10-8D5E-4B7A-9C21-5B2D8E0F4A02';
const NONE = Flags.FLAG_NULL;

async function call(object, operation, put, get) {
  const builder = new CallBuilder(true);
  builder.setOpnum(operation);
  put(builder);
  get(builder);
  const done = await object.call(builder);
  assert.strictEqual(done.hresult, 0);
  return done.getResults();
}

async function main([host, domain, user, password]) {
  const session = new Session().createSession(domain, user, password);
  session.setGlobalSocketTimeout(300000);
  const server = new ComServer(new Clsid(CLASS), host, session);
  await server.init();
  const unknown = await server.createInstance();

  const pantry = await unknown.queryInterface(PANTRY);
  const sum = await call(
    pantry,
    // It adds the four operations of IDispatch itself where an object has that, and does not know it here.
    4,
    (builder) => {
      builder.addInParamAsInt(-40, NONE);
      builder.addInParamAsInt(82, NONE);
    },
    (builder) => builder.addOutParamAsType(Types.INTEGER, NONE),
  );
  assert.strictEqual(sum[0].getValue(), 42);

  const scales = await unknown.queryInterface(SCALES);
  const length = await call(
    scales,
    2,
    (builder) => builder.addInParamAsString('Bread and cheese', Flags.FLAG_REPRESENTATION_STRING_LPWSTR),
    (builder) => builder.addOutParamAsType(Types.INTEGER, NONE),
  );
  assert.strictEqual(length[0].getValue(), 16);

  const load = [];
  for (let i = 0; i < 9000; i++) {
    load.push(new ComValue((7 * i + 3) & 0x7f, Types.BYTE));
  }
  const reversed = await call(
    scales,
    1,
    (builder) => {
      builder.addInParamAsInt(load.length, NONE);
      builder.addInParamAsArray(new ComArray(new ComValue(load, Types.BYTE), true), NONE);
    },
    (builder) => {
      const array = new ComArray(new ComValue(null, Types.BYTE), null, 1, true);
      builder.addOutParamAsObject(new ComValue(array, Types.COMARRAY), NONE);
    },
  );
  const got = reversed[0].getValue().getArrayInstance();
  assert.strictEqual(got.length, load.length);
  got.forEach((octet, i) => assert.strictEqual(octet.getValue(), load[load.length - 1 - i].getValue()));
  console.log('called by number');
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
