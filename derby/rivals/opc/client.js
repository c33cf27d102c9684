// node-opc-da as a client of the third race: client.js HOST DOMAIN USER PASSWORD CLSID RACE PLAN; one JSON object for each operation.
'use strict';

const fs = require('fs');
// Results go to standard output alone, whatever the libraries say there.
const results = console.log.bind(console);
console.log = console.error;
const { OPCServer } = require('node-opc-da');
const { ComServer, Session, Clsid } = require('node-opc-da').dcom;

const [host, domain, user, password, clsid, , ...given] = process.argv.slice(2);
const plan = { calls: 10000, warmup: 500, budget: 0, only: null, servers: [] };
for (let i = 0; i + 1 < given.length; i += 2) {
  const value = given[i + 1];
  if (given[i] === '--calls') plan.calls = Math.max(1, Number(value));
  else if (given[i] === '--warmup') plan.warmup = Number(value);
  else if (given[i] === '--budget-ms') plan.budget = Number(value) * 1e6;
  else if (given[i] === '--server-pid') plan.servers.push(value);
  else if (given[i] === '--operation') plan.only = value;
}
const PATIENCE = 20e9;
const CACHE = 1;

const now = () => Number(process.hrtime.bigint());
const own = () => { const used = process.cpuUsage(); return used.user + used.system; };

// Microseconds of all threads that the server has now.
function serverCpu() {
  let sum = 0;
  for (const server of plan.servers) {
    for (const task of fs.readdirSync(`/proc/${server}/task`)) {
      try {
        sum += Number(fs.readFileSync(`/proc/${server}/task/${task}/schedstat`, 'ascii').split(' ')[0]) / 1e3;
      } catch (gone) {
        // It ended meanwhile.
      }
    }
  }
  return plan.servers.length > 0 ? sum : null;
}

// A value is made of its item's number and of its time, in milliseconds.
async function read(io, handles, times) {
  const states = await io.read(CACHE, handles);
  if (states.length !== handles.length) throw new Error(`${states.length} values came for ${handles.length} items`);
  states.forEach((state, number) => {
    const time = state.timestamp.getTime();
    const fits = Number(state.value) === (number + 1) * 100000 + time % 100000;
    if (state.errorCode !== 0 || state.quality !== 192 || state.clientHandle !== number + 1 || time < times[number] || !fits) {
      throw new Error(`the value of item ${number} is wrong: ${state.value} at ${time} after ${times[number]}`);
    }
    times[number] = time;
  });
}

async function measure(server, operation, items) {
  const group = await server.addGroup(operation, { updateRate: 1000, timeBias: 0 });
  const manager = await group.getItemManager();
  const names = Array.from({ length: items }, (_, i) => `Line.Item${String(i).padStart(3, '0')}`);
  const added = await manager.add(names.map((itemID, i) => ({ itemID, clientHandle: i + 1 })));
  const handles = added.map(([code, item]) => {
    if (code !== 0) throw new Error(`${item.itemID}: ${code}`);
    return item.serverHandle;
  });
  const io = await group.getSyncIO();
  const times = new Array(items).fill(0);
  const begun = now();
  for (let i = 0; i < plan.warmup; i++) {
    await read(io, handles, times);
    if (plan.budget && now() - begun > plan.budget / 5) break;
  }
  const samples = [];
  const [cpu, other] = [own(), serverCpu()];
  const start = now();
  let last = start;
  for (let i = 0; i < plan.calls; i++) {
    await read(io, handles, times);
    const at = now();
    samples.push(Math.round((at - last) * 1000));
    last = at;
    if (plan.budget && at - start > plan.budget) break;
  }
  say(operation, samples, last - start, own() - cpu, other === null ? null : serverCpu() - other);
  const before = times.slice();
  for (const since = now(); before.every((time, i) => time === times[i]); ) {
    if (now() - since > PATIENCE) throw new Error('the values do not change');
    await read(io, handles, times);
  }
}

function say(operation, samples, totalNs, client, server) {
  const size = Math.max(1, Math.ceil(samples.length / 20));
  const blocks = [];
  for (let at = 0; at < samples.length; at += size) {
    const block = samples.slice(at, at + size).sort((a, b) => a - b);
    blocks.push(block[Math.floor(block.length / 2)]);
  }
  const histogram = new Map();
  for (const sample of samples) histogram.set(sample, (histogram.get(sample) || 0) + 1);
  results(JSON.stringify({
    operation, calls: samples.length, total_ns: Math.round(totalNs), client_cpu_us: client, server_cpu_us: server,
    blocks_ps: blocks, histogram_ps: [...histogram].sort((a, b) => a[0] - b[0]),
  }));
}

async function main() {
  const session = new Session().createSession(domain, user, password);
  session.setGlobalSocketTimeout(20000);
  const com = new ComServer(new Clsid(clsid), host, session);
  await com.init();
  const server = new OPCServer();
  await server.init(await com.createInstance());
  for (const items of [100, 1]) {
    const operation = `read ${items}`;
    if (plan.only === null || plan.only === operation) await measure(server, operation, items);
  }
  process.exit(0);
}

main().catch((failure) => {
  console.error(failure);
  process.exit(1);
});
