// What this package takes from clients/typescript. The build bundles it into dist/nodes/Agentledger/ledger.cjs.
export { canonicalize } from '../../../typescript/src/canonical/write.js';
export { parse } from '../../../typescript/src/canonical/parse.js';
