// What every variant of this study does.
#pragma once

// Called from Python, with how often it is to do nothing.
int call(int calls);
