// The package `soap` of Node reads the contract of a server and calls it, or serves the cellar itself; the library is on $NODE_PATH.
//
//     node soap.js bench|cellar ADDRESS [12]      a client of SOAP 1.1 or 1.2, which reads ADDRESS?singleWsdl; prints `ok` at the end
//     node soap.js serve CONTRACT                 a service, which prints where it is
'use strict';

const assert = require('assert');
const http = require('http');
const soap = require('soap');

// It reads most numbers as text: compared as JavaScript's == does.
const pattern = (size) => Buffer.from(Array.from({ length: size }, (_, at) => at % 256)).toString('base64');

// The answer's elements.
async function ask(client, operation, argument) {
  const [answer] = await client[`${operation}Async`](argument);
  return answer || {};
}

async function fails(call) {
  const error = await call.then(() => assert.fail('no fault'), (error) => error);
  return error.root.Envelope.Body.Fault;
}

async function bench(client) {
  for (const size of [0, 1, 100, 65536, 300000]) {
    const answer = await ask(client, 'GetBytes', { numBytes: size });
    assert.strictEqual(answer.GetBytesResult || '', pattern(size));
    assert.equal((await ask(client, 'PutBytes', { data: pattern(size) })).PutBytesResult, size);
  }
  await ask(client, 'VoidCall', {});
  assert.equal((await ask(client, 'InOutInt', { x: 41 })).x, 42);
  assert.strictEqual((await ask(client, 'InOutString', { s: 'Grüße <&> €' })).s, 'Grüße <&> €');
  const many = Array.from({ length: 100 }, () => ask(client, 'InOutInt', { x: 41 }));
  assert.ok((await Promise.all(many)).every((answer) => answer.x == 42));
}

async function cellar(client) {
  const values = {
    Byte: 200, SByte: -100, Int16: -30000, UInt16: 60000, Int32: -2000000000, UInt32: 4000000000, Single: 1.5, Double: -0.1,
    String: 'Grüße <&> "\'\n\t€ 😀 ]]>', TimeSpan: 'P1DT2H3M4.5S', Guid: '00112233-4455-6677-8899-aabbccddeeff',
    Uri: 'http://example.test/a?b=c&d', Bytes: 'AAECf4D+/w==', Grape: 'Pinot-Noir',
    Ints: { int: [1, -2, 70000, 0, -2147483648, 2147483647] }, Grapes: { Grape: ['Syrah', 'Pinot-Noir', 'Riesling'] },
    Stock: { KeyValueOfstringint: [{ Key: 'red', Value: 3 }, { Key: 'white', Value: -4 }] },
    Shelf: { Seldom: 0, third: 'three', B: 2, A: 1 }, MaybeInt: -2000000000,
  };
  for (const [type, value] of Object.entries(values)) {
    const answer = await ask(client, `Echo${type}`, { v: value });
    assert.deepEqual(answer[`Echo${type}Result`], value);
  }
  assert.strictEqual(String((await ask(client, 'EchoBoolean', { v: true })).EchoBooleanResult), 'true');
  const time = (await ask(client, 'EchoDateTime', { v: '2020-01-02T03:04:05Z' })).EchoDateTimeResult;
  assert.strictEqual(new Date(time).toISOString(), '2020-01-02T03:04:05.000Z');
  assert.equal((await ask(client, 'EchoMaybeInt', { v: null })).EchoMaybeIntResult, null);
  const split = await ask(client, 'Split', { v: 7, text: 'ab' });
  assert.deepEqual([split.SplitResult, split.half, split.text], [4, 3, 'abab']);
  await ask(client, 'Note', { text: 'one-way' });
  assert.deepEqual((await ask(client, 'Notes', {})).NotesResult, { string: 'one-way' });
  assert.equal((await ask(client, 'Take', { kind: 0 })).TakeResult, 17);
  const fault = await fails(ask(client, 'Take', { kind: 1 }));
  assert.deepEqual((fault.detail || fault.Detail).OutOfStock, { Left: 2, Name: 'Brut' });
  await fails(ask(client, 'Take', { kind: 4 }));
}

// What it is asked to echo comes back as it came.
function servant(wsdl) {
  const notes = [];
  const fault = (faultstring, detail) => { throw { Fault: { faultcode: 'soap:Server', faultstring, detail } }; };
  const space = { xmlns: 'http://schemas.datacontract.org/2004/07/Everywire.Cellar' };
  const taken = [
    () => ({ TakeResult: 17 }),
    () => fault('none left', { OutOfStock: { attributes: space, Left: 2, Name: 'Brut' } }),
    () => fault('broken', { Broken: { attributes: { xmlns: 'urn:labels' }, Why: 'dropped' } }),
    () => fault('closed today'),
    () => { throw new Error('the roof leaks'); },
  ];
  const operations = {
    Note: ({ text }) => { notes.push(text); },
    Notes: () => ({ NotesResult: { string: notes } }),
    Nothing: () => ({}),
    Split: ({ v, text }) => ({ SplitResult: Math.ceil(v / 2), half: Math.floor(v / 2), text: text + text }),
    Ring: ({ times }) => ({ RingResult: Array(Number(times)).fill('ding').join(' ') }),
    Take: ({ kind }) => taken[kind](),
  };
  for (const [, type] of wsdl.matchAll(/operation name="Echo(\w+)"/g)) {
    operations[`Echo${type}`] = ({ v }) => ({ [`Echo${type}Result`]: v });
  }
  const [, service] = /<wsdl:service name="(\w+)"/.exec(wsdl);
  const ports = [...wsdl.matchAll(/<wsdl:port name="(\w+)"/g)].map(([, port]) => [port, operations]);
  return { [service]: Object.fromEntries(ports) };
}

async function serve(address) {
  const wsdl = await (await fetch(address)).text();
  const server = http.createServer((_, response) => response.writeHead(404).end());
  server.listen(0, '127.0.0.1', () => {
    soap.listen(server, '/cellar', servant(wsdl), wsdl, () => console.log(`http://127.0.0.1:${server.address().port}/cellar`));
  });
}

async function main([what, address, version]) {
  if (what === 'serve') {
    return serve(address);
  }
  const client = await soap.createClientAsync(`${address}?singleWsdl`, { forceSoap12Headers: version === '12' });
  client.setEndpoint(address);
  await { bench, cellar }[what](client);
  console.log('ok');
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error.stack || error);
  process.exit(1);
});
