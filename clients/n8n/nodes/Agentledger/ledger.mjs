// What this package takes from clients/typescript. The build bundles it into dist/nodes/Agentledger/ledger.cjs.
export { canonicalize, parse, Signer } from '../../../typescript/src/index.js';
