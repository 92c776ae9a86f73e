// Entry point of the pages' scripts: each part is a separate module.
import { watchCharts } from "./charts.js";
import { offerCopies } from "./copy.js";
import { watchExplorer } from "./explorer.js";
import { watchForms } from "./form.js";
import { watchFolds } from "./fragments.js";
import { watchLedger } from "./ledger.js";
import { watchSamples } from "./samples.js";
import { watchTables } from "./tables.js";

// Material's search dialogue lacks an accessible name.
document.querySelector(".md-search[role=dialog]")?.setAttribute("aria-label", "Search");

offerCopies(document);
watchCharts();
watchExplorer();
watchSamples();
watchTables();
watchFolds();
watchLedger();
watchForms();
