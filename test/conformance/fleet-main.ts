// A server for all test files of a run, for as long as whoever started this program holds its input open.
import process from 'node:process';
import { type SharedFleet, startServer } from './server.ts';

const input = process.stdin.resume();
const { url, token, hasSecondOwner = false, processes = [], watched, stop } = await startServer({});
input.once('close', () => void stop());
const fleet: SharedFleet = {
  target: { url, token, hasSecondOwner },
  processUrls: processes.map((one) => one.url),
  watchedUrl: watched?.url ?? url,
};
process.stdout.write(`${JSON.stringify(fleet)}\n`);
if (input.destroyed || input.readableEnded) await stop();
