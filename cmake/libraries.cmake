# libraries
